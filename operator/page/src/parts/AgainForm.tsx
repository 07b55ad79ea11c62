/** Asks for the chain and the model of a run that repeats a finished one, and leads to the new run. */
import { useState, type FormEvent } from "react";
import { pathOf, post, Refused } from "../api/client";
import type { Chains, Investigation, Providers, StartedAgain } from "../api/types";
import { investigationLink } from "../logic/route";
import { go, useGet } from "./context";
import { Field, Problem } from "./parts";
import { ACTIONS } from "../words";

type Words = { label: string; hint: string; sameChain: string; sameModel: string; start: string };

type Props = {
  item: Investigation;
  words: Words;
  /** The route below the investigation that starts the new run. */
  route: "replays" | "retries";
  /** The request's body for the chosen names; empty: as in the finished run. */
  body: (chain: string, provider: string) => object;
  onClose: () => void;
};

export function AgainForm({ item, words, route, body, onClose }: Props) {
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
      const made = await post<StartedAgain>(`${pathOf(item.namespace, item.name)}/${route}`, body(chain, provider));
      go(investigationLink(made.namespace, made.name));
    } catch (refused) {
      setError(refused as Refused);
      setSending(false);
    }
  };
  return (
    <form className="form card popover" aria-label={words.label} onSubmit={(event) => void send(event)}>
      <p className="hint">{words.hint}</p>
      <Field label="Chain">
        <select value={chain} onChange={(event) => setChain(event.target.value)}>
          <option value="">{words.sameChain}</option>
          {[...new Set(chains.value?.items.map((one) => one.name))].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      <Field label="Model">
        <select value={provider} onChange={(event) => setProvider(event.target.value)}>
          <option value="">{words.sameModel}</option>
          {providers.value?.items.map((one) => (
            <option key={one.uid} value={one.name}>{one.name} ({one.model})</option>
          ))}
        </select>
      </Field>
      {error && <Problem error={error} />}
      <div className="actions">
        <button type="submit" className="primary" disabled={sending}>{words.start}</button>
        <button type="button" onClick={onClose}>{ACTIONS.close}</button>
      </div>
    </form>
  );
}
