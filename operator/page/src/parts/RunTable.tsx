/** Shows investigations as a table with one line each; a whole row is a link, and identical alerts are one row. */
import { useState } from "react";
import type { Item } from "../api/types";
import { author, between, cost, shortMoment, tokens } from "../logic/format";
import { groupsOf } from "../logic/groups";
import { investigationLink, type ListQuery } from "../logic/route";
import { isFinished } from "../logic/timeline";
import { ACTIONS, COLUMNS, OPTIONS, SEVERITIES, SORT } from "../words";
import { ConfidenceTag } from "./ConfidenceTag";
import { FlawBadges, SeverityBadge } from "./Flaws";
import { Outcome } from "./Outcome";
import { Marked } from "./Marked";
import { Badge } from "./parts";
import { Ago } from "./Time";

const SHOWN_FLAWS = 2;
/** Characters of a name that are always shown. */
const END = 6;

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
          <Ranked name={COLUMNS.investigation} by="severity" sort={sort} onSort={onSort} />
          <Ranked name={COLUMNS.finding} by="confidence" sort={sort} onSort={onSort} />
          {going && <th scope="col" className="narrow-off number">{COLUMNS.progress}</th>}
          <Ranked name={COLUMNS.tokens} by="tokens" sort={sort} onSort={onSort} className="narrow-off number" />
          <Ranked name={COLUMNS.cost} by="cost" sort={sort} onSort={onSort} className="narrow-off number" />
          <Ranked name={COLUMNS.duration} by="duration" sort={sort} onSort={onSort} className="narrow-off number" />
          <Sortable
            name={COLUMNS.age}
            to={onSort && (sort === "newest" ? "oldest" : "newest")}
            on={!onSort ? null : sort === "newest" ? "ascending" : sort === "oldest" ? "descending" : null}
            onSort={onSort}
            className="number"
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

type RankedProps = { name: string; by: keyof typeof SORT; sort: string; onSort: Props["onSort"]; className?: string };

/** Sorts by what is highest; that order has no reverse. */
function Ranked({ name, by, sort, onSort, className = "" }: RankedProps) {
  return <Sortable name={name} to={onSort && sort !== by ? by : null} on={onSort && sort === by ? "descending" : null} onSort={onSort} className={className} />;
}

type SortableProps = { name: string; to: string | null; on: "ascending" | "descending" | null; onSort: Props["onSort"]; className: string };

function Sortable({ name, to, on, onSort, className }: SortableProps) {
  const target = to as keyof typeof SORT | null;
  return (
    <th scope="col" className={className} aria-sort={on ?? undefined}>
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
          {item.severity && <SeverityBadge severity={item.severity} query={query} />}
          <a className="row-link" href={investigationLink(item.namespace, item.name)} title={whole(item)}>{item.alertType}</a>
          {alike > 0 && onOpen && (
            <button type="button" className="alike" aria-expanded={open} title={`${alike} ${OPTIONS.moreAlike}`} onClick={onOpen}>×{alike + 1}<span className="visually-hidden">: {alike} {OPTIONS.moreAlike}</span></button>
          )}
          <Where name={`${item.namespace}/${item.name}`} />
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
  return (
    <>
      {item.finding && <ConfidenceTag finding={item.finding} brief />}
      <FlawBadges flaws={item.flaws ?? []} query={query} most={SHOWN_FLAWS} />
      {item.outcome && <Outcome outcome={item.outcome} />}
      {item.finding ? (
        <span className="told" title={item.finding.summary}>{query.search ? <Marked text={item.finding.summary} search={query.search} whole={query.searchIn === "timeline"} /> : item.finding.summary}</span>
      ) : item.failure ? (
        <span className="told bad" title={item.failure.message}>{item.failure.reason}: {item.failure.message}</span>
      ) : (
        <InStage stage={isFinished(item.state) ? null : item.progress.currentStage} />
      )}
    </>
  );
}

function InStage({ stage }: { stage: string | null }) {
  return stage === null ? <span className="told hint nothing">–</span> : <span className="told hint">{COLUMNS.stage} {stage}</span>;
}

/** Shows the end of a long name too: it tells the investigations of one alert apart. */
function Where({ name }: { name: string }) {
  const at = Math.max(0, name.length - END);
  return <span className="where"><span className="start">{name.slice(0, at)}</span>{name.slice(at)}</span>;
}

export function Severity({ severity }: { severity: string }) {
  return <span className={`tag s-${severity}`}>{severity in SEVERITIES ? SEVERITIES[severity as keyof typeof SEVERITIES] : severity}</span>;
}

function whole(item: Item): string {
  return `${item.namespace}/${item.name}, ${item.chain}${item.author ? `, ${ACTIONS.by} ${author(item.author)}` : ""}`;
}
