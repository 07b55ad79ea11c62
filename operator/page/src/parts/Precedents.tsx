/** Shows the earlier investigations that the agents were told about, and how each ended. */
import { pathOf } from "../api/client";
import type { Precedent, Precedents } from "../api/types";
import { moment } from "../logic/format";
import { investigationLink } from "../logic/route";
import type { Timeline } from "../logic/timeline";
import { CONFIDENCE, ENDINGS, MATCHES, PRECEDENTS } from "../words";
import { useGet } from "./context";
import { Section } from "./parts";

/** Whether the timeline notes that agents were told about earlier investigations. */
export function hasPrecedents(timeline: Timeline): boolean {
  for (const ev of timeline.events.values()) if (ev.type === "notice" && ev.metadata["reason"] === "Precedents" && !ev.question) return true;
  return false;
}

export function PrecedentsCard({ namespace, name, timeline }: { namespace: string; name: string; timeline: Timeline }) {
  const found = useGet<Precedents>(hasPrecedents(timeline) ? `${pathOf(namespace, name)}/timeline/precedents` : null);
  if (!found.value || (found.value.items.length === 0 && found.value.hidden === 0)) return null;
  return (
    <Section title={PRECEDENTS.title} side={<span className="hint">{PRECEDENTS.hint}</span>}>
      <ul className="precedents">
        {found.value.items.map((one) => (
          <PrecedentRow key={one.uid} one={one} />
        ))}
      </ul>
      {found.value.hidden > 0 && <p className="hint">{found.value.hidden} {PRECEDENTS.hidden}</p>}
    </Section>
  );
}

function PrecedentRow({ one }: { one: Precedent }) {
  const title = `${one.namespace}/${one.name}`;
  return (
    <li className={`precedent p-${one.ending.toLowerCase()}`}>
      <div className="precedent-head">
        <time dateTime={one.finishedAt} title={moment(one.finishedAt)}>{one.finishedAt.slice(0, 10)}</time>
        {one.onRecord ? <a href={investigationLink(one.namespace, one.name)}>{title}</a> : <span>{title} ({PRECEDENTS.gone})</span>}
        <span className="hint" title={one.matched}>{MATCHES[one.match]}</span>
      </div>
      <p>{one.summary}</p>
      <div className="precedent-head">
        <span className={`confidence c-${one.confidence}`}>{CONFIDENCE[one.confidence]}</span>
        <strong>{ENDINGS[one.ending]}</strong>
        {one.reviewer && <span className="hint">{PRECEDENTS.reviewedBy} {one.reviewer}</span>}
        {one.outcome && <span className="hint">{one.outcome}</span>}
      </div>
    </li>
  );
}
