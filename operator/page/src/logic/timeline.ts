/**
 * Builds the state of an investigation from messages.
 *
 * Decision: a message replaces the complete object that it is about; only deltas append. So the order of messages about
 * different objects does not matter, and repetitions do no harm. Offsets count Unicode code points, as the server does.
 */
import type { Acted, QuestionRef, RunHead, ServerMessage, StageChange, State, ToldEvent } from "../api/types";

export type Ev = ToldEvent & { question: QuestionRef | null; length: number };

type Answer = { question: QuestionRef; run: RunHead | null };
type Early = { offset: number; text: string };

export type Timeline = {
  events: ReadonlyMap<string, Ev>;
  /** Ids of events in reading order: those of the investigation, then those of each question. */
  order: readonly string[];
  run: RunHead | null;
  answers: ReadonlyMap<string, Answer>;
  stages: ReadonlyMap<number, StageChange>;
  /** Deltas that arrived before their event. */
  early: ReadonlyMap<string, Early[]>;
  caughtUp: boolean;
};

export const EMPTY: Timeline = {
  events: new Map(),
  order: [],
  run: null,
  answers: new Map(),
  stages: new Map(),
  early: new Map(),
  caughtUp: false,
};

/** Maximum number of events with early deltas; the closed events contain the text of any others. */
const EARLY = 50;

export function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

function added(ev: Ev, offset: number, text: string): Ev {
  if (ev.status !== "streaming" || offset > ev.length) return ev; // a gap: the closed event contains the complete text
  const length = offset + lengthOf(text);
  if (length <= ev.length) return ev;
  const kept = offset === ev.length ? ev.content : [...ev.content].slice(0, offset).join("");
  return { ...ev, content: kept + text, length };
}

function place(ev: Ev): number {
  return ev.question?.place ?? 0;
}

function with_<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

export function reduce(before: Timeline, messages: readonly ServerMessage[]): Timeline {
  const events = new Map(before.events);
  // What does not change stays the same object, so that what shows it is not drawn again.
  let { answers, stages, early } = before;
  let { run, caughtUp, order } = before;
  let unordered = false;
  for (const message of messages) {
    switch (message.type) {
      case "timelineEvent.created":
      case "timelineEvent.updated":
      case "timelineEvent.closed": {
        const told = message.event;
        const known = events.get(told.id);
        if (known && (known.revision > told.revision || (known.status !== "streaming" && told.status === "streaming"))) break;
        let ev: Ev = { ...told, question: message.question ?? null, length: lengthOf(told.content) };
        if (known && ev.status === "streaming" && known.length > ev.length) {
          ev = { ...ev, content: known.content, length: known.length };
        }
        for (const words of early.get(ev.id) ?? []) ev = added(ev, words.offset, words.text);
        if (early.has(ev.id)) {
          early = new Map([...early].filter(([id]) => id !== ev.id));
        }
        events.set(ev.id, ev);
        if (!known) unordered = true;
        if (message.question && !answers.has(message.question.uid)) {
          answers = with_(answers, message.question.uid, { question: message.question, run: null });
        }
        break;
      }
      case "delta": {
        const known = events.get(message.event);
        if (known) events.set(known.id, added(known, message.offset, message.text));
        else if (early.has(message.event) || early.size < EARLY) {
          const words = { offset: message.offset, text: message.text };
          early = with_(early, message.event, [...(early.get(message.event) ?? []), words]);
        }
        break;
      }
      case "investigation.changed":
        if (message.question) answers = with_(answers, message.question.uid, { question: message.question, run: message.run });
        else if (!run || message.run.revision >= run.revision) run = message.run;
        break;
      case "stage.changed":
        if (!message.question) stages = with_(stages, message.stage.index, message.stage);
        break;
      case "caughtUp":
        caughtUp = true;
        break;
    }
  }
  if (unordered) {
    const all = [...events.values()].sort((a, b) => place(a) - place(b) || a.seq - b.seq);
    order = all.map((ev) => ev.id);
  }
  return { events, order, run, answers, stages, early, caughtUp };
}

/** States of what waits and runs, and of what has ended. */
export const ACTIVE: readonly State[] = ["pending", "running", "parked"];
export const FINISHED: readonly State[] = ["completed", "failed", "cancelled", "timed_out"];

export function isFinished(state: string | undefined): boolean {
  return state !== undefined && state !== "pending" && state !== "running" && state !== "parked";
}

/** Returns the text of the last final analysis of the run, of its synthesis where there is one; null: there is none. */
export function finalAnalysisOf(timeline: Timeline): string | null {
  // What a stage of kind action says is no finding.
  const acting = new Set([...timeline.stages.values()].filter((stage) => stage.kind === "action").map((stage) => stage.name));
  const concludes = (ev: Ev | undefined) => ev?.type === "final_analysis" && !ev.question && !acting.has(ev.stage ?? "");
  const all = timeline.order.map((id) => timeline.events.get(id)).filter(concludes);
  return all.at(-1)?.content ?? null;
}

/** Returns the last event of each agent that is at work. */
export function nowOf(timeline: Timeline): Ev[] {
  const found = new Map<string, Ev>();
  for (const id of timeline.order) {
    const ev = timeline.events.get(id);
    if (ev?.status === "streaming" && !ev.question && ev.execution) found.set(ev.execution, ev);
  }
  return [...found.values()];
}

export type Row =
  | { kind: "lanes"; key: string; events: readonly (Ev | null)[] }
  | { kind: "stage"; key: string; stage: string; name: string; agents: AgentTab[]; chosen: string | null; state: string | null; acted: Acted | null }
  | { kind: "event"; key: string; ev: Ev };

export type AgentTab = { execution: string; name: string; streaming: boolean };

/**
 * Returns the rows of a timeline: a heading for each stage, followed by the events of the selected agent.
 *
 * `chosen` maps a stage to the selected agent; without an entry, events of all agents are returned: side by side if there
 * are at most `lanes` agents.
 */
export function rowsOf(timeline: Timeline, chosen: ReadonlyMap<string, string>, lanes = 0): Row[] {
  const groups = new Map<string, Ev[]>();
  const rows: Row[] = [];
  const stages = new Map([...timeline.stages.values()].map((stage) => [stage.name, stage]));
  for (const id of timeline.order) {
    const ev = timeline.events.get(id);
    if (!ev || ev.question) continue;
    const key = ev.stageId ?? "";
    const group = groups.get(key);
    if (group) group.push(ev);
    else groups.set(key, [ev]);
  }
  for (const [key, group] of groups) {
    if (key === "") {
      for (const ev of group) rows.push({ kind: "event", key: ev.id, ev });
      continue;
    }
    const agents = agentsOf(group);
    const only = agents.length > 1 ? (chosen.get(key) ?? null) : null;
    const name = group.find((ev) => ev.stage)?.stage ?? "stage";
    const { state = null, acted = null } = stages.get(name) ?? {};
    rows.push({ kind: "stage", key, stage: key, name, agents, chosen: only, state, acted });
    if (only === null && agents.length > 1 && agents.length <= lanes) {
      rows.push(...sideBySide(group, agents));
      continue;
    }
    for (const ev of group) {
      if (only === null || ev.execution === only || ev.execution === null) rows.push({ kind: "event", key: ev.id, ev });
    }
  }
  return rows;
}

/** Returns rows with the n-th event of each agent; events of the stage itself come first, in rows of their own. */
function sideBySide(group: readonly Ev[], agents: readonly AgentTab[]): Row[] {
  const own = group.filter((ev) => ev.execution === null).map((ev): Row => ({ kind: "event", key: ev.id, ev }));
  const each = agents.map((agent) => group.filter((ev) => ev.execution === agent.execution));
  const longest = Math.max(0, ...each.map((events) => events.length));
  const rows = Array.from({ length: longest }, (_, n): Row => {
    const events = each.map((of) => of[n] ?? null);
    return { kind: "lanes", key: `lanes ${events.find((ev) => ev !== null)?.id ?? n}`, events };
  });
  return [...own, ...rows];
}

function agentsOf(group: readonly Ev[]): AgentTab[] {
  const found = new Map<string, AgentTab>();
  for (const ev of group) {
    if (!ev.execution) continue;
    const known = found.get(ev.execution);
    const streaming = ev.status === "streaming" || (known?.streaming ?? false);
    found.set(ev.execution, { execution: ev.execution, name: [ev.parent, ev.agent ?? "agent"].filter(Boolean).join(" › "), streaming });
  }
  return [...found.values()];
}

/** Finds the first call of a tool. */
export function eventOfTool(timeline: Timeline, name: string): Ev | undefined {
  for (const id of timeline.order) {
    const ev = timeline.events.get(id);
    if (ev?.type === "llm_tool_call" && ev.metadata["name"] === name && !ev.question) return ev;
  }
  return undefined;
}

/** Finds the event of a tool call. */
export function eventOfCall(timeline: Timeline, call: string): Ev | undefined {
  for (const ev of timeline.events.values()) if (ev.toolCall === call && ev.type === "llm_tool_call") return ev;
  return undefined;
}
