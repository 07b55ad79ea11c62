/** Runs a finished investigation again: a new investigation of the same alert, with live tools. */
import { useState } from "react";
import type { Investigation } from "../api/types";
import { AgainForm } from "./AgainForm";
import { ACTIONS, HINTS, OPTIONS } from "../words";

const WORDS = { label: ACTIONS.retry, hint: HINTS.retry, sameChain: OPTIONS.sameChain, sameModel: OPTIONS.sameModels, start: ACTIONS.startRetry };

const body = (chain: string, provider: string) => ({ ...(chain ? { chain } : {}), ...(provider ? { llmProvider: provider } : {}) });

export function RetryAction({ item }: { item: Investigation }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="retry" aria-expanded={open} onClick={() => setOpen(!open)}>{ACTIONS.retry}</button>
      {open && <AgainForm item={item} words={WORDS} route="retries" body={body} onClose={() => setOpen(false)} />}
    </>
  );
}
