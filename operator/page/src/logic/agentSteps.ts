/**
 * Groups the events of an agent into steps: what the model thought and said, and the tool calls that it asked for.
 *
 * Decision: a step begins where the model speaks after calls or after its response, so a timeline of any version folds,
 * also one whose events do not name their model call.
 */
import { lineOf } from "./lines";
import type { Ev } from "./timeline";

export type AgentStep = {
  /** Id of its first event. */
  key: string;
  /** Its place among the steps of its agent, from 1. */
  number: number;
  events: readonly Ev[];
};

const SPOKEN = new Set(["llm_thinking", "llm_response", "final_analysis"]);
/** Maximum events of a step. */
const MOST = 50;

/** Returns the steps of one agent, given its events in order. */
export function stepsOf(events: readonly Ev[]): AgentStep[] {
  const groups: Ev[][] = [];
  let said = true;
  for (const ev of events) {
    const last = groups.at(-1);
    const thinks = ev.type === "llm_thinking";
    if (!last || last.length >= MOST || (said && SPOKEN.has(ev.type))) groups.push([ev]);
    else last.push(ev);
    said = !thinks;
  }
  return groups.map((group, place) => ({ key: group[0]?.id ?? "", number: place + 1, events: group }));
}

export type StepLine = { text: string; tools: readonly { name: string; count: number }[]; failed: number };

/** Returns one line about a step: what the model said, the tools that it called, and how many events failed. */
export function lineOfStep({ events }: AgentStep): StepLine {
  const spoken = events.find((ev) => ev.type === "llm_response" || ev.type === "final_analysis") ?? events.find((ev) => SPOKEN.has(ev.type));
  const first = events[0];
  const tools = new Map<string, number>();
  for (const ev of events) {
    if (ev.type !== "llm_tool_call") continue;
    const name = String(ev.metadata["name"] ?? "");
    tools.set(name, (tools.get(name) ?? 0) + 1);
  }
  return {
    text: spoken ? lineOf(spoken) : first && tools.size === 0 ? lineOf(first) : "",
    tools: [...tools].map(([name, count]) => ({ name, count })),
    failed: events.filter(isFailed).length,
  };
}

export function isFailed(ev: Ev): boolean {
  return ev.type === "error" || ev.metadata["is_error"] === true;
}
