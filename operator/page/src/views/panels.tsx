/**
 * Lists the panels of an investigation: each shows one aspect of a run, beside or above its timeline.
 *
 * To add a panel: write a component that takes a RunShown, and add its row. A panel that reads more than the run itself
 * requests it with useGet, and shows nothing while there is nothing to show. Add its states to fixtures/runs.ts.
 */
import type { ComponentType } from "react";
import type { Changes, Finding, Investigation } from "../api/types";
import { dispatchesOf } from "../logic/hypotheses";
import { traceLink } from "../logic/route";
import { eventOfCall, eventOfTool, type Timeline } from "../logic/timeline";
import { ChangesStrip } from "../parts/ChangesStrip";
import { go } from "../parts/context";
import { FindingCard } from "../parts/FindingCard";
import { Hypotheses } from "../parts/Hypotheses";
import { Markdown } from "../parts/Markdown";
import { hasPrecedents, PrecedentsCard } from "../parts/Precedents";
import { Figures, Problem, Section } from "../parts/parts";
import { SECTIONS } from "../words";
import { Chat } from "./Chat";

export type RunShown = {
  item: Investigation;
  timeline: Timeline;
  state: string;
  finished: boolean;
  finding: Finding | null;
  summary: string | null;
  failure: { reason: string; message: string } | null;
  changes: Changes | null;
  /** Opens an event of the timeline and scrolls to it. */
  show: (event: string) => void;
};

export type RunPanel = {
  name: string;
  /** answer: the conclusion and what follows from it. context: what the run got and used. story: above the timeline. */
  place: "answer" | "context" | "story";
  shows: (run: RunShown) => boolean;
  Panel: ComponentType<RunShown>;
};

export const PANELS: readonly RunPanel[] = [
  { name: "failure", place: "answer", shows: ({ failure }) => failure !== null, Panel: Failure },
  { name: "finding", place: "answer", shows: ({ finding }) => finding !== null, Panel: Conclusion },
  { name: "executive-summary", place: "answer", shows: ({ summary, item }) => Boolean(summary ?? item.executiveSummaryError), Panel: Summary },
  { name: "questions", place: "answer", shows: ({ finished, state }) => finished && state !== "cancelled", Panel: Questions },
  { name: "usage", place: "context", shows: () => true, Panel: Spending },
  { name: "alert", place: "context", shows: () => true, Panel: AlertText },
  { name: "precedents", place: "context", shows: ({ timeline }) => hasPrecedents(timeline), Panel: Earlier },
  { name: "hypotheses", place: "story", shows: ({ timeline }) => dispatchesOf(timeline).length > 0, Panel: SubAgents },
  { name: "changes", place: "story", shows: ({ changes }) => changes !== null, Panel: AroundOnset },
];

/** Draws the panels of a place. */
export function Panels({ place, run }: { place: RunPanel["place"]; run: RunShown }) {
  return PANELS.filter((one) => one.place === place && one.shows(run)).map(({ name, Panel }) => <Panel key={name} {...run} />);
}

function Failure({ failure }: RunShown) {
  return failure && <Problem error={new Error(failure.message)} title={`${failure.reason}:`} />;
}

function citing({ item, timeline, show }: RunShown) {
  return (call: string) => {
    const ev = eventOfCall(timeline, call);
    if (ev) show(ev.id);
    else go(traceLink(item.namespace, item.name, call));
  };
}

function Conclusion(run: RunShown) {
  return run.finding && <FindingCard finding={run.finding} onCitation={citing(run)} />;
}

function SubAgents(run: RunShown) {
  return <Hypotheses found={dispatchesOf(run.timeline)} onEvent={run.show} onCitation={citing(run)} />;
}

function Summary({ summary, item }: RunShown) {
  return (
    <>
      {summary && <Section title={SECTIONS.executiveSummary}><Markdown text={summary} /></Section>}
      {item.executiveSummaryError && <div className="problem soft">No executive summary: {item.executiveSummaryError}</div>}
    </>
  );
}

function Earlier({ item, timeline }: RunShown) {
  return <PrecedentsCard namespace={item.namespace} name={item.name} timeline={timeline} />;
}

function Questions({ item, timeline }: RunShown) {
  return <Chat namespace={item.namespace} name={item.name} timeline={timeline} />;
}

function Spending({ item }: RunShown) {
  return <Section title={SECTIONS.usage}><Figures spent={item.spent} calls={item.modelCalls} tools={item.toolCalls} /></Section>;
}

function AlertText({ item }: RunShown) {
  return (
    <Section title={SECTIONS.alert}>
      <pre className="alert-text" tabIndex={0}>{item.alert}</pre>
      {item.runbook && (
        <details>
          <summary>{SECTIONS.runbook}</summary>
          <Markdown text={item.runbook} />
        </details>
      )}
    </Section>
  );
}

function AroundOnset({ changes, timeline, show }: RunShown) {
  const showCall = (id: string | null, name: string) => {
    const ev = (id ? eventOfCall(timeline, id) : undefined) ?? eventOfTool(timeline, name);
    return ev ? () => show(ev.id) : null;
  };
  return changes && <ChangesStrip changes={changes} onChanges={showCall(changes.changesCall, "tarsy.changes")} onSignals={showCall(changes.triageCall, "tarsy.triage")} />;
}
