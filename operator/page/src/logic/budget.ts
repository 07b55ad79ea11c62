/** Computes how much of its limits a run has used. */
import type { Investigation } from "../api/types";
import { METERS } from "../words";
import { count, dollars, duration } from "./format";

export type Meter = {
  name: string;
  used: string;
  /** The limit in words; null: there is none. */
  limit: string | null;
  /** Used part of the limit, from 0 to 1; null: there is no limit. */
  share: number | null;
};

/** Part of a limit from which a run is close to it. */
export const CLOSE = 0.8;

function meter(name: string, used: number | null, limit: number | null | undefined, written: (value: number) => string, more = ""): Meter[] {
  if (used === null) return [];
  const share = typeof limit === "number" && limit > 0 ? Math.min(1, Math.max(0, used / limit)) : null;
  return [{ name, used: written(used) + more, limit: share === null ? null : written(limit as number), share }];
}

/** Returns tokens, cost, time, and, where they have limits, tool calls and the iterations of the agent that is the closest to its limit. */
export function metersOf(item: Investigation, now: number): Meter[] {
  const { spent, budget } = item;
  const started = item.startedAt ? Date.parse(item.startedAt) : null;
  const ends = [item.deadline ? Date.parse(item.deadline) : null, started !== null && budget?.minutes ? started + budget.minutes * 60_000 : null].filter((one) => one !== null);
  const agents = item.stages.flatMap((stage) => stage.agents).filter((agent) => agent.state === "running" && agent.maxIterations);
  const part = (agent: (typeof agents)[number]) => agent.iterations / (agent.maxIterations ?? 1);
  const farthest = agents.sort((a, b) => part(b) - part(a))[0];
  return [
    ...meter(METERS.tokens, spent.totalTokens, budget?.tokens, count, spent.usageComplete ? "" : "+"),
    ...meter(METERS.cost, spent.costUSD, budget?.costUSD, dollars, spent.costComplete ? "" : "+"),
    ...(started === null ? [] : meter(METERS.time, Math.max(0, now - started), ends.length > 0 ? Math.min(...ends) - started : null, duration)),
    ...(budget?.toolCalls ? meter(METERS.toolCalls, item.toolCalls, budget.toolCalls, count) : []),
    ...(farthest ? meter(agents.length > 1 ? `${METERS.iterations} (${farthest.name})` : METERS.iterations, farthest.iterations, farthest.maxIterations, count) : []),
  ];
}
