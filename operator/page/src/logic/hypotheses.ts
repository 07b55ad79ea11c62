/**
 * Reads the sub-agents of a run from its timeline: who dispatched them, their task, and the verdict on their hypothesis.
 */
import type { Ev, Timeline } from "./timeline";

export type Cited = { quote: string; where: string; call: string | null; supported: boolean; reason: string | null };

export type SubAgent = {
  id: string;
  execution: string;
  task: string;
  hypothesis: string | null;
  /** Supported, Refuted or Unresolved; null: none yet. */
  verdict: string | null;
  why: string | null;
  cited: readonly Cited[];
  /** The event of the dispatch, and the last event of the sub-agent. */
  event: string;
  last: string;
};

export type Dispatching = { agent: string; execution: string; subAgents: readonly SubAgent[] };

const text = (value: unknown): string | null => (typeof value === "string" && value ? value : null);

/** The agents that dispatched others, in the order of the timeline. */
export function dispatchesOf(timeline: Timeline): readonly Dispatching[] {
  const events = timeline.order.flatMap((id) => timeline.events.get(id) ?? []);
  const verdicts = new Map(events.filter((ev) => ev.metadata["reason"] === "Verdict" && ev.execution).map((ev) => [ev.execution, ev]));
  const last = new Map(events.map((ev) => [ev.execution, ev.id]));
  const found = new Map<string, { agent: string; subAgents: SubAgent[] }>();
  for (const ev of events) {
    const id = text(ev.metadata["sub_agent"]);
    const execution = text(ev.metadata["dispatched"]);
    if (ev.metadata["name"] !== "dispatch_agent" || !id || !execution || !ev.execution) continue;
    const of = found.get(ev.execution) ?? { agent: ev.agent ?? "", subAgents: [] };
    found.set(ev.execution, of);
    of.subAgents.push({
      id,
      execution,
      task: taskOf(ev),
      hypothesis: text(ev.metadata["hypothesis"]),
      ...verdictOf(verdicts.get(execution)),
      event: ev.id,
      last: last.get(execution) ?? ev.id,
    });
  }
  return [...found].map(([execution, one]) => ({ execution, ...one }));
}

function taskOf(ev: Ev): string {
  try {
    const given: unknown = JSON.parse(String(ev.metadata["arguments"] ?? ""));
    return typeof given === "object" && given !== null ? (text((given as Record<string, unknown>)["task"]) ?? "") : "";
  } catch {
    return "";
  }
}

function verdictOf(ev: Ev | undefined): Pick<SubAgent, "verdict" | "why" | "cited"> {
  if (!ev) return { verdict: null, why: null, cited: [] };
  const citations = ev.metadata["citations"];
  return {
    verdict: text(ev.metadata["verdict"]),
    why: text(ev.metadata["why"]),
    cited: Array.isArray(citations) ? citations.flatMap(citedOf) : [],
  };
}

function citedOf(found: unknown): Cited[] {
  if (typeof found !== "object" || found === null) return [];
  const { quote, agent, tool, callId, interaction, supported, reason } = found as Record<string, unknown>;
  if (typeof quote !== "string") return [];
  const where = [agent, tool].filter((one) => typeof one === "string" && one).join(" · ") || String(callId ?? "");
  return [{ quote, where, call: text(interaction), supported: supported === true, reason: text(reason) }];
}
