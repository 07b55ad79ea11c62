/** Starts a replay of a finished investigation, and leads to the comparison with another one. */
import { useState, type FormEvent } from "react";
import { pathOf, post, Refused } from "../api/client";
import type { Chains, Investigation, Providers, StartedReplay } from "../api/types";
import { compareLink, investigationLink } from "../logic/route";
import { go, useGet } from "./context";
import { Field, Problem } from "./parts";
import { ACTIONS, OPTIONS } from "../words";

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
      {open === "replay" && <ReplayForm item={item} onClose={() => setOpen(null)} />}
      {open === "compare" && <CompareForm item={item} />}
    </>
  );
}

function ReplayForm({ item, onClose }: { item: Investigation; onClose: () => void }) {
  const [chain, setChain] = useState("");
  const [provider, setProvider] = useState("");
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<Refused | null>(null);
  const chains = useGet<Chains>("/chains", { namespace: item.namespace, withLibrary: true, limit: 200 });
  const of = chains.value?.items.find((one) => (chain ? one.name === chain : one.name === item.chain && one.namespace === item.chainNamespace));
  // The provider is looked up in the namespace of the chain.
  const providers = useGet<Providers>("/llmproviders", { namespace: of?.namespace ?? item.chainNamespace, limit: 200 });
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    const overrides = { ...(chain ? { chainRef: { name: chain } } : {}), ...(provider ? { llmProviderRef: { name: provider } } : {}) };
    try {
      const made = await post<StartedReplay>(`${pathOf(item.namespace, item.name)}/replays`, Object.keys(overrides).length > 0 ? { overrides } : {});
      go(investigationLink(made.namespace, made.name));
    } catch (refused) {
      setError(refused as Refused);
      setSending(false);
    }
  };
  return (
    <form className="form card popover" aria-label={ACTIONS.replay} onSubmit={(event) => void send(event)}>
      <p className="hint">Runs it again with its recorded tool results. Nothing in the cluster is read or changed.</p>
      <Field label="Chain">
        <select value={chain} onChange={(event) => setChain(event.target.value)}>
          <option value="">{OPTIONS.recordedChain}</option>
          {[...new Set(chains.value?.items.map((one) => one.name))].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      <Field label="Model">
        <select value={provider} onChange={(event) => setProvider(event.target.value)}>
          <option value="">{OPTIONS.ownModels}</option>
          {providers.value?.items.map((one) => (
            <option key={one.uid} value={one.name}>{one.name} ({one.model})</option>
          ))}
        </select>
      </Field>
      {error && <Problem error={error} />}
      <div className="actions">
        <button type="submit" className="primary" disabled={sending}>{ACTIONS.startReplay}</button>
        <button type="button" onClick={onClose}>{ACTIONS.close}</button>
      </div>
    </form>
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
