/** Shows flaws and severity as badges; each leads to the list of the investigations that have it. */
import type { Flaw } from "../api/types";
import { listLink, type ListQuery } from "../logic/route";
import { FLAWS, OPTIONS, SEVERITIES } from "../words";

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

export function SeverityBadge({ severity, query = {} }: { severity: string; query?: ListQuery }) {
  const name = SEVERITIES[severity as keyof typeof SEVERITIES] ?? severity;
  return <a className={`tag s-${severity}`} href={listLink({ ...query, severity })} title={OPTIONS.onlySeverity}>{name}</a>;
}
