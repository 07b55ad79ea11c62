/** Starts a replay of a finished investigation, and leads to the comparison with another one. */
import { useState, type FormEvent } from "react";
import type { Investigation } from "../api/types";
import { compareLink } from "../logic/route";
import { AgainForm } from "./AgainForm";
import { go } from "./context";
import { Field } from "./parts";
import { ACTIONS, HINTS, OPTIONS } from "../words";

const WORDS = { label: ACTIONS.replay, hint: HINTS.replay, sameChain: OPTIONS.recordedChain, sameModel: OPTIONS.ownModels, start: ACTIONS.startReplay };

const body = (chain: string, provider: string) => {
  const overrides = { ...(chain ? { chainRef: { name: chain } } : {}), ...(provider ? { llmProviderRef: { name: provider } } : {}) };
  return Object.keys(overrides).length > 0 ? { overrides } : {};
};

type Props = { item: Investigation; writes: boolean };

export function ReplayActions({ item, writes }: Props) {
  const [open, setOpen] = useState<"replay" | "compare" | null>(null);
  const turn = (which: "replay" | "compare") => setOpen(open === which ? null : which);
  return (
    <>
      {writes && !item.replay && <button type="button" className="replay" aria-expanded={open === "replay"} onClick={() => turn("replay")}>{ACTIONS.replay}</button>}
      {item.replayOf ? (
        <a className="button" href={compareLink(item.namespace, item.replayOf, item.name)}>{ACTIONS.compareWithSource}</a>
      ) : (
        <button type="button" aria-expanded={open === "compare"} onClick={() => turn("compare")}>{ACTIONS.compare}</button>
      )}
      {open === "replay" && <AgainForm item={item} words={WORDS} route="replays" body={body} onClose={() => setOpen(null)} />}
      {open === "compare" && <CompareForm item={item} />}
    </>
  );
}

function CompareForm({ item }: { item: Investigation }) {
  const [other, setOther] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    go(compareLink(item.namespace, item.name, other.trim()));
  };
  return (
    <form className="form card popover" aria-label={ACTIONS.compare} onSubmit={send}>
      <Field label="Other investigation" hint={`Name of an investigation or a replay in namespace ${item.namespace}.`}>
        <input value={other} onChange={(event) => setOther(event.target.value)} required maxLength={253} pattern="[a-z0-9]([\-a-z0-9.]*[a-z0-9])?" />
      </Field>
      <button type="submit" className="primary">{ACTIONS.compare}</button>
    </form>
  );
}
