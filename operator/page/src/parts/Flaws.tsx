/** Shows flaws and severity as badges; each leads to the list of the investigations that have it. */
import type { Flaw } from "../api/types";
import { listLink, type ListQuery } from "../logic/route";
import { ACTIONS, FLAWS, OPTIONS, SEVERITIES } from "../words";

type FlawsProps = { flaws: readonly Flaw[]; query?: ListQuery; most?: number };

/** Shows at most `most` flaws; `query` is the list in which they are shown, which the link narrows. */
export function FlawBadges({ flaws, query = {}, most = flaws.length }: FlawsProps) {
  const more = flaws.slice(most);
  return (
    <>
      {flaws.slice(0, most).map((flaw) => (
        <a key={flaw} className="tag t-flaw" href={listLink({ ...query, flaw })} title={`${FLAWS[flaw].what} ${OPTIONS.onlyFlaw}`}>{FLAWS[flaw].name}</a>
      ))}
      {more.length > 0 && <span className="tag t-flaw" title={more.map((flaw) => FLAWS[flaw].name).join(", ")}>+{more.length}</span>}
    </>
  );
}

/** Counts the flaws of a list; a flaw filters the list by it, and the one that it is filtered by takes the filter away. */
export function FlawCounts({ counts, query }: { counts: Partial<Record<Flaw, number>>; query: ListQuery }) {
  const found = (Object.keys(FLAWS) as Flaw[]).filter((flaw) => counts[flaw]);
  if (found.length === 0) return null;
  return (
    <ul className="flaw-counts" aria-label={OPTIONS.flawCounts}>
      {found.map((flaw) => (
        <li key={flaw}>
          <a className="tag t-flaw" aria-current={query.flaw === flaw ? "true" : undefined} href={listLink({ ...query, flaw: query.flaw === flaw ? "" : flaw })} title={`${FLAWS[flaw].what} ${query.flaw === flaw ? ACTIONS.clear : OPTIONS.onlyFlaw}`}>
            {FLAWS[flaw].name} <span className="number">{counts[flaw]}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

export function SeverityBadge({ severity, query = {} }: { severity: string; query?: ListQuery }) {
  const name = SEVERITIES[severity as keyof typeof SEVERITIES] ?? severity;
  return <a className={`tag s-${severity}`} href={listLink({ ...query, severity })} title={OPTIONS.onlySeverity}>{name}</a>;
}
