/** Shows the results of evaluations over time: lines by suite, the selected result, and on demand a table. */
import { lazy, useState } from "react";
import type { Quality } from "../api/types";
import { dayBucket, written } from "../logic/chart";
import { moment } from "../logic/format";
import { suiteLink } from "../logic/route";
import { stateOfVerdict } from "../logic/suite";
import { passShare, suiteCourses, type EvalResult } from "../logic/usage";
import { CHARTS, COLUMNS, EMPTY, QUALITY, SECTIONS } from "../words";
import { Plot } from "./Plot";
import { Empty, Verdict } from "./parts";
import { MarkSwatch } from "./Textures";

const RateLines = lazy(() => import("./RateLines"));

export function EvalChart({ quality, until }: { quality: Quality; until: number }) {
  const [place, setPlace] = useState<number | null>(null);
  const found = quality.evaluations;
  if (!found) return <p className="hint">{QUALITY.mayNotEvaluations}</p>;
  if (found.items.length === 0) return <Empty>{QUALITY.noEvaluations}</Empty>;
  const { courses, hidden } = suiteCourses(found.items);
  const order = courses.flatMap((one) => one.results).sort((a, b) => Date.parse(a.finishedAt) - Date.parse(b.finishedAt));
  const days = quality.days.map((day) => ({ ...dayBucket(day.date), from: Date.parse(day.starts) }));
  const shown = place === null ? order.at(-1) : order[place];
  const described = (one: EvalResult) => `${one.namespace}/${one.suite}, ${one.run}, ${moment(one.finishedAt)}: ${one.verdict}, ${one.passed} ${QUALITY.ofReviewed} ${one.samples}`;
  return (
    <figure className="chart">
      <Plot label={`${SECTIONS.evaluations}, ${QUALITY.passed}`} places={order.length} place={place} onPlace={setPlace} describe={(at) => (order[at] ? described(order[at]) : "")}>
        <RateLines courses={courses} days={days} until={until} order={order} place={place} onPlace={setPlace} />
      </Plot>
      <figcaption>
        {shown && (
          <p className="chart-at">
            {place === null ? COLUMNS.lastRun : shown.run}: <strong>{written("percent", passShare(shown))}</strong> {shown.verdict}
          </p>
        )}
        <ul className="chart-legend">
          {courses.map(({ name, results }, at) => (
            <li key={name}>
              <MarkSwatch place={at} />
              <span className="chart-name">{name}</span>
              <span className="number">{written("percent", results.length > 0 ? passShare(results.at(-1) as EvalResult) : null)}</span>
            </li>
          ))}
        </ul>
        {hidden > 0 && <p className="hint">{hidden} {QUALITY.hidden}</p>}
        {found.more && <p className="hint">{QUALITY.older}</p>}
      </figcaption>
      <Results items={found.items} />
    </figure>
  );
}

function Results({ items }: { items: readonly EvalResult[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{CHARTS.table}</summary>
      {open && (
        <div className="scroll chart-table" tabIndex={0} role="region" aria-label={SECTIONS.evaluations}>
          <table>
            <thead>
              <tr>
                {[CHARTS.run, COLUMNS.chain, CHARTS.ended, CHARTS.result].map((name) => <th key={name} scope="col">{name}</th>)}
                <th scope="col" className="number">{QUALITY.passed}</th>
              </tr>
            </thead>
            <tbody>
              {items.map((one) => (
                <tr key={`${one.namespace}/${one.run}`}>
                  <th scope="row"><a href={suiteLink(one.namespace, one.suite, one.run)}>{one.namespace}/{one.run}</a></th>
                  <td>{one.chain}</td>
                  <td>{moment(one.finishedAt)}</td>
                  <td><Verdict verdict={one.verdict} state={stateOfVerdict(one.verdict)} /></td>
                  <td className="number">{one.samples === 0 ? EMPTY.noTools : `${one.passed} ${QUALITY.ofReviewed} ${one.samples}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
