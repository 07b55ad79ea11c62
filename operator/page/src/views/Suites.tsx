/** Lists the suites with their last verdicts. */
import type { EvalSuites } from "../api/types";
import { counted } from "../logic/format";
import { suiteLink } from "../logic/route";
import { stateOfVerdict } from "../logic/suite";
import { scope, useGet, useTitle, useWorld } from "../parts/context";
import { Empty, Problem, Verdict } from "../parts/parts";
import { COLUMNS, EMPTY, READY, VIEWS } from "../words";

const SECONDS = 10;

export default function Suites() {
  useTitle(VIEWS.suites);
  const suites = useGet<EvalSuites>("/evalsuites", { namespace: scope(useWorld()), limit: 200 }, SECONDS);
  const items = suites.value?.items;
  return (
    <div className="view wide" aria-busy={suites.loading || undefined}>
      <h1>{VIEWS.suites}</h1>
      {suites.error && <Problem error={suites.error} />}
      {items?.length === 0 && <Empty>{EMPTY.noSuites}</Empty>}
      {items && items.length > 0 && (
        <ul className="suite-list">
          {items.map((one) => (
            <li key={one.uid} className="card">
              <div className="title-row">
                <h2><a href={suiteLink(one.namespace, one.name)}>{one.namespace}/{one.name}</a></h2>
                {one.lastVerdict ? <Verdict verdict={one.lastVerdict} state={stateOfVerdict(one.lastVerdict)} /> : <span className="hint">{EMPTY.noVerdict}</span>}
                {one.ready === false && <span className="bad">{READY.no}</span>}
              </div>
              {one.description && <p>{one.description}</p>}
              <p className="hint">
                {counted(one.cases, "cases")}, {counted(one.samples, "samples")}{one.lastRun && <>; {COLUMNS.lastRun} {one.lastRun}</>}
              </p>
              {one.conditions.filter((found) => found.status === "False").map((found) => (
                <p key={found.type} className="hint">{found.type}: {found.reason}. {found.message}</p>
              ))}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
