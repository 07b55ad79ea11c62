/** Runs a finished investigation again: a new investigation of the same alert, with live tools. */
import { useState, type FormEvent } from "react";
import { pathOf, post, Refused } from "../api/client";
import type { Chains, Investigation, Providers, StartedRetry } from "../api/types";
import { investigationLink } from "../logic/route";
import { go, useGet } from "./context";
import { Field, Problem } from "./parts";
import { ACTIONS, HINTS, OPTIONS } from "../words";

export function RetryAction({ item }: { item: Investigation }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="retry" aria-expanded={open} onClick={() => setOpen(!open)}>{ACTIONS.retry}</button>
      {open && <RetryForm item={item} onClose={() => setOpen(false)} />}
    </>
  );
}

function RetryForm({ item, onClose }: { item: Investigation; onClose: () => void }) {
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
    try {
      const made = await post<StartedRetry>(`${pathOf(item.namespace, item.name)}/retries`, { ...(chain ? { chain } : {}), ...(provider ? { llmProvider: provider } : {}) });
      go(investigationLink(made.namespace, made.name));
    } catch (refused) {
      setError(refused as Refused);
      setSending(false);
    }
  };
  return (
    <form className="form card popover" aria-label={ACTIONS.retry} onSubmit={(event) => void send(event)}>
      <p className="hint">{HINTS.retry}</p>
      <Field label="Chain">
        <select value={chain} onChange={(event) => setChain(event.target.value)}>
          <option value="">{OPTIONS.sameChain}</option>
          {[...new Set(chains.value?.items.map((one) => one.name))].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      <Field label="Model">
        <select value={provider} onChange={(event) => setProvider(event.target.value)}>
          <option value="">{OPTIONS.sameModels}</option>
          {providers.value?.items.map((one) => (
            <option key={one.uid} value={one.name}>{one.name} ({one.model})</option>
          ))}
        </select>
      </Field>
      {error && <Problem error={error} />}
      <div className="actions">
        <button type="submit" className="primary" disabled={sending}>{ACTIONS.startRetry}</button>
        <button type="button" onClick={onClose}>{ACTIONS.close}</button>
      </div>
    </form>
  );
}
