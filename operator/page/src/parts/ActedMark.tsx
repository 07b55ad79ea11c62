/** Marks a stage of kind action with what it did, and tells it below the finding. */
import type { Acted } from "../api/types";
import { markOf } from "../logic/acted";

export function ActedMark({ acted, state }: { acted: Acted | null | undefined; state: string | null }) {
  const mark = markOf(acted, state);
  return mark && <span className={`acted-mark${mark.warn ? " warn" : ""}`} title={mark.title}>{mark.text}</span>;
}

export function ActedLines({ actions }: { actions: readonly Acted[] }) {
  return actions.map((acted, place) => (
    <p key={place} className="acted-line">
      {acted.sentence}
      {acted.contradiction && <strong className="acted-mark warn">{acted.contradiction}</strong>}
    </p>
  ));
}
