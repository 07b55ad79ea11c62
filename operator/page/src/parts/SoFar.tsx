/** Answers, before there is a finding: the likely cause and how sure it is, and what to do next. */
import type { Changes } from "../api/types";
import { firstOf, nameOf, relative } from "../logic/changes";
import { dispatchesOf } from "../logic/hypotheses";
import type { Timeline } from "../logic/timeline";
import { SECTIONS, SO_FAR, VIEWS } from "../words";
import { useWorld } from "./context";
import { Section } from "./parts";

type Props = { state: string; desired: string; timeline: Timeline; changes: Changes | null };

export function SoFar({ state, desired, timeline, changes }: Props) {
  return (
    <Section title={SECTIONS.soFar}>
      <dl className="so-far">
        <div data-answer="cause">
          <dt>{SO_FAR.cause}</dt>
          <dd><Cause timeline={timeline} changes={changes} /></dd>
        </div>
        <div data-answer="next">
          <dt>{SECTIONS.next}</dt>
          <dd><Next state={state} desired={desired} /></dd>
        </div>
      </dl>
    </Section>
  );
}

/** Names the hypothesis that a sub-agent supports, else the first candidate of the changes; neither is a finding. */
function Cause({ timeline, changes }: Pick<Props, "timeline" | "changes">) {
  const supported = dispatchesOf(timeline).flatMap((one) => one.subAgents).filter((one) => one.verdict === "Supported" && one.hypothesis).at(-1);
  if (supported) return <>{supported.hypothesis} <span className="hint">{SO_FAR.hypothesis} {supported.id}. {SO_FAR.unsure}</span></>;
  const first = changes && firstOf(changes);
  if (changes && first) return <>{first.type} {nameOf(first.object)}: {first.summary} <span className="hint">{relative(first.at, changes.onset)}. {SO_FAR.candidate} {SO_FAR.unsure}</span></>;
  return <>{SO_FAR.none} <span className="hint">{SO_FAR.unsure}</span></>;
}

function Next({ state, desired }: Pick<Props, "state" | "desired">) {
  const { session } = useWorld();
  if (desired === "Concluded") return SO_FAR.concludes;
  if (desired === "Cancelled") return SO_FAR.ends;
  if (state === "pending") return <>{SO_FAR.waits} <a href="#/system">{VIEWS.system}</a></>;
  if (state === "parked") return <>{SO_FAR.parked} <a href="#/approvals">{VIEWS.approvals}</a></>;
  return session.hasToken ? <>{SO_FAR.goesOn} {SO_FAR.stops}</> : SO_FAR.goesOn;
}
