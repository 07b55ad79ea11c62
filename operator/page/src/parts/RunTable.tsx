/** Shows investigations as a table with one line each; a whole row is a link, and identical alerts are one row. */
import { useState } from "react";
import type { Item } from "../api/types";
import { author, between, cost, shortMoment, tokens } from "../logic/format";
import { groupsOf } from "../logic/groups";
import { investigationLink, type ListQuery } from "../logic/route";
import { isFinished } from "../logic/timeline";
import { ACTIONS, COLUMNS, CONFIDENCE, FLAWS, OPTIONS, SEVERITIES, SORT } from "../words";
import { Marked } from "./Marked";
import { Badge } from "./parts";
import { Ago } from "./Time";

const SHOWN_FLAWS = 2;

type Props = {
  items: readonly Item[];
  now: number;
  query: ListQuery;
  /** Whether identical alerts share a row. */
  grouped: boolean;
  /** Selects an order; null: the order is fixed. */
  onSort: ((sort: string) => void) | null;
};

export function RunTable({ items, now, query, grouped, onSort }: Props) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const groups = grouped ? groupsOf(items) : items.map((item) => ({ item, alike: [] }));
  const turn = (uid: string) => setOpen((before) => (before.has(uid) ? new Set([...before].filter((one) => one !== uid)) : new Set([...before, uid])));
  const sort = query.sort ?? "newest";
  const going = items.some((item) => !isFinished(item.state));
  return (
    <table className="list runs">
      <thead>
        <tr>
          <th scope="col">{COLUMNS.phase}</th>
          <th scope="col">{COLUMNS.investigation}</th>
          <th scope="col">{COLUMNS.finding}</th>
          {going && <th scope="col" className="narrow-off number">{COLUMNS.progress}</th>}
          <Sortable name={COLUMNS.tokens} to={onSort && sort !== "tokens" ? "tokens" : null} on={onSort && sort === "tokens" ? "descending" : null} onSort={onSort} />
          <Sortable name={COLUMNS.cost} to={onSort && sort !== "cost" ? "cost" : null} on={onSort && sort === "cost" ? "descending" : null} onSort={onSort} />
          <th scope="col" className="narrow-off number">{COLUMNS.duration}</th>
          <Sortable
            name={COLUMNS.age}
            to={onSort && (sort === "newest" ? "oldest" : "newest")}
            on={!onSort ? null : sort === "newest" ? "ascending" : sort === "oldest" ? "descending" : null}
            onSort={onSort}
            narrow
          />
        </tr>
      </thead>
      <tbody>
        {groups.flatMap(({ item, alike }) => [
          <RunRow key={item.uid} item={item} now={now} query={query} going={going} alike={alike.length} open={open.has(item.uid)} onOpen={() => turn(item.uid)} />,
          ...(open.has(item.uid) ? alike.map((one) => <RunRow key={one.uid} item={one} now={now} query={query} going={going} under />) : []),
        ])}
      </tbody>
    </table>
  );
}

type SortableProps = { name: string; to: string | null; on: "ascending" | "descending" | null; onSort: ((sort: string) => void) | null; narrow?: boolean };

function Sortable({ name, to, on, onSort, narrow = false }: SortableProps) {
  const target = to as keyof typeof SORT | null;
  return (
    <th scope="col" className={narrow ? "number" : "narrow-off number"} aria-sort={on ?? undefined}>
      {onSort && target ? (
        <button type="button" className="sort" onClick={() => onSort(target)} title={SORT[target]}>{name}{on && <span aria-hidden="true"> {on === "ascending" ? "▴" : "▾"}</span>}</button>
      ) : (
        <>{name}{on && <span aria-hidden="true"> ▾</span>}</>
      )}
    </th>
  );
}

type RowProps = { item: Item; now: number; query: ListQuery; going: boolean; alike?: number; open?: boolean; onOpen?: () => void; under?: boolean };

function RunRow({ item, now, query, going, alike = 0, open = false, onOpen, under = false }: RowProps) {
  const { stagesFinished, stagesPlanned } = item.progress;
  return (
    <tr className={under ? "under" : ""}>
      <td data-label={COLUMNS.phase}><Badge state={item.state} desired={item.desiredState} /></td>
      <td data-label={COLUMNS.investigation} className="what">
        <span className="one-line">
          {item.severity && <Severity severity={item.severity} />}
          <a className="row-link" href={investigationLink(item.namespace, item.name)} title={whole(item)}>{item.alertType}</a>
          {alike > 0 && onOpen && (
            <button type="button" className="alike" aria-expanded={open} title={`${alike} ${OPTIONS.moreAlike}`} onClick={onOpen}>×{alike + 1}<span className="visually-hidden">: {alike} {OPTIONS.moreAlike}</span></button>
          )}
          <span className="where">{item.namespace}/{item.name}</span>
        </span>
      </td>
      <td data-label={COLUMNS.finding} className="finding-cell">
        <span className="one-line"><Told item={item} query={query} /></span>
        {item.excerpt && query.search && <span className="excerpt"><Marked text={item.excerpt} search={query.search} whole={query.searchIn === "timeline"} /></span>}
      </td>
      {going && <td data-label={COLUMNS.progress} className="narrow-off number">{stagesFinished}/{stagesPlanned}</td>}
      <td data-label={COLUMNS.tokens} className="narrow-off number">{tokens(item.spent)}</td>
      <td data-label={COLUMNS.cost} className="narrow-off number">{cost(item.spent)}</td>
      <td data-label={COLUMNS.duration} className="narrow-off number">{between(item.startedAt, item.finishedAt, now)}</td>
      <td data-label={COLUMNS.age} className="number"><span className="hint">{shortMoment(item.acceptedAt, now)}</span> <Ago at={item.acceptedAt} now={now} /></td>
    </tr>
  );
}

function Told({ item, query }: { item: Item; query: ListQuery }) {
  const flaws = item.flaws ?? [];
  const more = flaws.slice(SHOWN_FLAWS);
  return (
    <>
      {item.finding && <span className={`confidence c-${item.finding.confidence}`} title={CONFIDENCE[item.finding.confidence]}>{item.finding.confidence}</span>}
      {flaws.slice(0, SHOWN_FLAWS).map((flaw) => <span key={flaw} className="tag t-flaw" title={FLAWS[flaw].what}>{FLAWS[flaw].name}</span>)}
      {more.length > 0 && <span className="tag t-flaw" title={more.map((flaw) => FLAWS[flaw].name).join(", ")}>+{more.length}</span>}
      {item.finding ? (
        <span className="told" title={item.finding.summary}>{query.search ? <Marked text={item.finding.summary} search={query.search} whole={query.searchIn === "timeline"} /> : item.finding.summary}</span>
      ) : item.failure ? (
        <span className="told bad" title={item.failure.message}>{item.failure.reason}: {item.failure.message}</span>
      ) : (
        <span className="told hint">{isFinished(item.state) ? "–" : (item.progress.currentStage ?? "–")}</span>
      )}
    </>
  );
}

export function Severity({ severity }: { severity: string }) {
  return <span className={`tag s-${severity}`}>{severity in SEVERITIES ? SEVERITIES[severity as keyof typeof SEVERITIES] : severity}</span>;
}

function whole(item: Item): string {
  return `${item.namespace}/${item.name}, ${item.chain}${item.author ? `, ${ACTIONS.by} ${author(item.author)}` : ""}`;
}
