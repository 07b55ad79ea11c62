/** Shows the plan that an alert would follow, as a tree with the source of each setting. */
import { useEffect, useRef, useState } from "react";
import { post, Refused } from "../api/client";
import type { Chain, PlanPart, PlanShown } from "../api/types";
import { systemLink } from "../logic/route";
import { planQuestion, warningsOf, type SystemQuery } from "../logic/system";
import { EMPTY, SYSTEM } from "../words";
import { go, useWorld } from "./context";
import { Empty, Field, Problem } from "./parts";

type Props = { chains: readonly Chain[]; query: SystemQuery };

export function PlanViewer({ chains, query }: Props) {
  const world = useWorld();
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (query.plan) form.current?.scrollIntoView({ block: "nearest" });
  }, [query.plan]);
  const chain = chains.find((one) => `${one.namespace}/${one.name}` === query.plan);
  const question = chain ? planQuestion(chain, query, world.namespace) : null;
  const change = (changes: Partial<SystemQuery>) => go(systemLink({ ...query, ...changes }), true);
  const places = [...new Set([...(chain ? [chain.namespace] : []), ...world.namespaces.items])];
  if (chains.length === 0) return <Empty>{EMPTY.noChains}</Empty>;
  return (
    <>
      <div className="plan-form" ref={form}>
        <Field label={SYSTEM.chain}>
          <select value={query.plan} onChange={(event) => change({ plan: event.target.value, type: "", from: "" })}>
            <option value="">{SYSTEM.chooseChain}</option>
            {chains.map((one) => <option key={one.uid}>{`${one.namespace}/${one.name}`}</option>)}
          </select>
        </Field>
        {chain && question && (
          <>
            <Field label={SYSTEM.alertType}>
              <select value={question.alertType} onChange={(event) => change({ type: event.target.value })}>
                {(chain.alertTypes.length > 0 ? chain.alertTypes : [question.alertType]).map((one) => <option key={one}>{one}</option>)}
              </select>
            </Field>
            <Field label={SYSTEM.alertIn}>
              <select value={question.namespace} onChange={(event) => change({ from: event.target.value })}>
                {places.map((one) => <option key={one}>{one}</option>)}
              </select>
            </Field>
          </>
        )}
      </div>
      {question && <Planned key={JSON.stringify(question)} {...question} />}
    </>
  );
}

function Planned({ namespace, alertType, chain }: { namespace: string; alertType: string; chain: string }) {
  const [found, setFound] = useState<{ plan?: PlanShown; error?: Error }>({});
  useEffect(() => {
    let left = false;
    post<PlanShown>(`/namespaces/${namespace}/plan`, { alertType, chain }).then(
      (plan) => left || setFound({ plan }),
      (error: unknown) => left || setFound({ error: error instanceof Refused ? error : new Error(String(error)) }),
    );
    return () => {
      left = true;
    };
  }, [namespace, alertType, chain]);
  if (found.error) return <Problem error={found.error} />;
  if (!found.plan) return <p className="hint" aria-busy="true">{EMPTY.loading}</p>;
  const { errors, tree } = found.plan;
  const warnings = tree ? warningsOf(tree) : [];
  return (
    <>
      {errors.length > 0 && (
        <div className="problem" role="alert">
          <strong>{SYSTEM.noPlan}</strong>
          <ul>{errors.map((error) => <li key={error}>{error}</li>)}</ul>
        </div>
      )}
      {warnings.length > 0 && (
        <div className="plan-warnings" role="note">
          <strong>{SYSTEM.planWarnings}</strong>
          <ul>{warnings.map((one) => <li key={one}>{one}</li>)}</ul>
        </div>
      )}
      {tree && <ul className="plan-tree"><Part part={tree} depth={0} /></ul>}
    </>
  );
}

const OPEN_DEPTH = 3;

function Part({ part, depth }: { part: PlanPart; depth: number }) {
  return (
    <li>
      <details open={depth < OPEN_DEPTH && part.what !== "limits"}>
        <summary>
          {part.what} <strong>{part.name}</strong> {part.note && <span className="hint">{part.note}</span>}
          {part.warnings.length > 0 && <span className="tag t-flaw">{part.warnings[0]?.split(".")[0]}</span>}
        </summary>
        {part.settings.length > 0 && (
          <dl className="settings">
            {part.settings.map((one, n) => (
              <div key={n}>
                <dt>{one.name}</dt>
                <dd>
                  <span className="value">{one.value}</span>
                  {part.what !== "Chain" && <span className="origin">{one.origin ? `${one.origin.kind} ${one.origin.namespace}/${one.origin.name} ${one.origin.field}` : SYSTEM.builtIn}</span>}
                  {one.warnings.map((text) => <span key={text} className="bad">{text}</span>)}
                </dd>
              </div>
            ))}
          </dl>
        )}
        {part.sentences.map((text) => <p key={text} className="hint">{text}</p>)}
        {part.parts.length > 0 && <ul>{part.parts.map((one, n) => <Part key={n} part={one} depth={depth + 1} />)}</ul>}
      </details>
    </li>
  );
}
