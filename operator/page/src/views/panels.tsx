/**
 * Lists the panels of an investigation: each shows one aspect of a run, beside or above its timeline.
 *
 * To add a panel: write a component that takes a RunShown, and add its row. A panel that reads more than the run itself
 * requests it with useGet, and shows nothing while there is nothing to show. Add its states to fixtures/runs.ts.
 */
import { memo, useMemo, type ComponentType } from "react";
import type { Changes, Finding, Investigation } from "../api/types";
import { actionsOf } from "../logic/acted";
import { dispatchesOf } from "../logic/hypotheses";
import { doubtsOf } from "../logic/doubts";
import { nextSteps } from "../logic/nextSteps";
import { traceLink } from "../logic/route";
import { eventOfCall, eventOfTool, finalAnalysisOf, type Timeline } from "../logic/timeline";
import { ChangesStrip } from "../parts/ChangesStrip";
import { go } from "../parts/context";
import { Hypotheses } from "../parts/Hypotheses";
import { AlertCard } from "../parts/AlertCard";
import { EvidenceCard, FindingCard, NextStepsCard } from "../parts/FindingCard";
import { Markdown } from "../parts/Markdown";
import { hasPrecedents, PrecedentsCard } from "../parts/Precedents";
import { Figures, Problem, Section } from "../parts/parts";
import { ReviewBox } from "../parts/ReviewBox";
import { ScoreBox } from "../parts/Scores";
import { SoFar } from "../parts/SoFar";
import { EMPTY, NEXT, SECTIONS } from "../words";
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
  show: (event: string, quote?: string) => void;
};

export type RunPanel = {
  name: string;
  /** answer: the conclusion and what follows from it. story: what happened around it. context: what the run got and used. */
  place: "answer" | "story" | "context";
  shows: (run: RunShown) => boolean;
  Panel: ComponentType<RunShown>;
};

export const PANELS: readonly RunPanel[] = [
  { name: "failure", place: "answer", shows: ({ failure }) => failure !== null, Panel: Failure },
  { name: "finding", place: "answer", shows: ({ finding }) => finding !== null, Panel: Conclusion },
  { name: "no-finding", place: "answer", shows: ({ finished, finding, failure }) => finished && finding === null && failure === null, Panel: Nothing },
  { name: "so-far", place: "answer", shows: ({ finished, finding }) => !finished && finding === null, Panel: Provisional },
  { name: "next-steps", place: "answer", shows: ({ finished }) => finished, Panel: Next },
  { name: "evidence", place: "answer", shows: ({ finding }) => (finding?.claims.length ?? 0) > 0, Panel: Claims },
  { name: "executive-summary", place: "answer", shows: ({ summary, item }) => Boolean(summary ?? item.executiveSummaryError), Panel: Summary },
  { name: "review", place: "answer", shows: ({ finished, finding, state }) => finished && finding !== null && state !== "cancelled", Panel: Review },
  { name: "score", place: "answer", shows: ({ finished, finding, item }) => finished && finding !== null && !item.replay, Panel: Score },
  { name: "questions", place: "answer", shows: ({ finished, state }) => finished && state !== "cancelled", Panel: Questions },
  { name: "alert", place: "context", shows: () => true, Panel: AlertText },
  { name: "precedents", place: "context", shows: ({ timeline }) => hasPrecedents(timeline), Panel: Earlier },
  { name: "hypotheses", place: "story", shows: ({ timeline }) => dispatchesOf(timeline).length > 0, Panel: SubAgents },
  { name: "usage", place: "context", shows: () => true, Panel: Spending },
  { name: "changes", place: "story", shows: ({ changes }) => changes !== null, Panel: AroundOnset },
];

/** Draws the panels of a place. */
export const Panels = memo(function Panels({ place, run }: { place: RunPanel["place"]; run: RunShown }) {
  return PANELS.filter((one) => one.place === place && one.shows(run)).map(({ name, Panel }) => <Panel key={name} {...run} />);
});

function Failure({ failure }: RunShown) {
  return failure && <div data-answer="cause"><Problem error={new Error(failure.message)} title={`${failure.reason}:`} /></div>;
}

function citing({ item, timeline, show }: RunShown) {
  return (call: string, quote?: string) => {
    const ev = eventOfCall(timeline, call);
    if (ev) show(ev.id, quote);
    else go(traceLink(item.namespace, item.name, call));
  };
}

function Conclusion({ finding, item, timeline }: RunShown) {
  return finding && <FindingCard finding={finding} doubts={doubtsOf(finding, item)} actions={actionsOf(item, timeline.stages)} outcome={item.outcome} />;
}

function Next({ finding, summary, timeline, failure, item }: RunShown) {
  const analysis = finalAnalysisOf(timeline);
  const steps = useMemo(() => nextSteps({ summary: finding?.summary ?? "", executive: summary, analysis }), [finding, summary, analysis]);
  const changes = finding?.changesForGit ?? [];
  if (steps || changes.length > 0) return <NextStepsCard steps={steps ?? { text: "", commands: [] }} changes={changes} />;
  const text = item.state === "cancelled" ? NEXT.cancelled : failure ? NEXT.failed : NEXT.none;
  return <NextStepsCard steps={{ text, commands: [] }} />;
}

function Nothing({ state }: RunShown) {
  return <Section title={SECTIONS.finding} answer="cause"><p>{state === "cancelled" ? EMPTY.cancelledFirst : EMPTY.endedWithout}</p></Section>;
}

function Provisional({ state, item, timeline, changes }: RunShown) {
  return <SoFar state={state} desired={timeline.run?.desiredState ?? item.desiredState} timeline={timeline} changes={changes} />;
}

function Claims(run: RunShown) {
  return run.finding && <EvidenceCard finding={run.finding} onCitation={citing(run)} />;
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

function Review({ item }: RunShown) {
  return <ReviewBox namespace={item.namespace} name={item.name} uid={item.uid} />;
}

function Score({ item }: RunShown) {
  return <ScoreBox namespace={item.namespace} name={item.name} uid={item.uid} />;
}

function Questions({ item, timeline }: RunShown) {
  return <Chat namespace={item.namespace} name={item.name} timeline={timeline} />;
}

function Spending({ item }: RunShown) {
  return <Section title={SECTIONS.usage}><Figures spent={item.spent} calls={item.modelCalls} tools={item.toolCalls} /></Section>;
}

function AlertText({ item }: RunShown) {
  return <AlertCard text={item.alert} runbook={item.runbook} />;
}

function AroundOnset({ changes, timeline, show }: RunShown) {
  const showCall = (id: string | null, name: string) => {
    const ev = (id ? eventOfCall(timeline, id) : undefined) ?? eventOfTool(timeline, name);
    return ev ? () => show(ev.id) : null;
  };
  return changes && <ChangesStrip changes={changes} onChanges={showCall(changes.changesCall, "tarsy.changes")} onSignals={showCall(changes.triageCall, "tarsy.triage")} />;
}
