/** Folds the stages of a timeline to one line each. */
import { isFailed } from "./agentSteps";
import { holdsEvent, type FoldedRow } from "./stepRows";
import type { Ev } from "./timeline";

function eventsOf(row: FoldedRow): readonly Ev[] {
  switch (row.kind) {
    case "event":
      return [row.ev];
    case "lanes":
      return row.events.filter((ev) => ev !== null);
    case "steps":
      return row.steps.flatMap((step) => step?.events ?? []);
    default:
      return [];
  }
}

function stageOf(row: FoldedRow): string | null {
  if (row.kind === "stage") return null;
  return row.kind === "agents" ? row.stage : (eventsOf(row)[0]?.stageId ?? null);
}

/** Returns the rows without those of closed stages; the heads of the stages stay. */
export function withoutClosed(rows: readonly FoldedRow[], closed: ReadonlySet<string>): readonly FoldedRow[] {
  return closed.size === 0 ? rows : rows.filter((row) => !closed.has(stageOf(row) ?? ""));
}

/** Returns the stage that shows an event; null: none does. */
export function stageHolding(rows: readonly FoldedRow[], event: string): string | null {
  const row = rows.find((one) => holdsEvent(one, event));
  return row ? stageOf(row) : null;
}

export type StageSummary = { events: number; calls: number; failed: number };

/** Counts the events of a stage, the tool calls among them, and those that failed. */
export function summaryOf(rows: readonly FoldedRow[], stage: string): StageSummary {
  const events = rows.filter((row) => stageOf(row) === stage).flatMap(eventsOf);
  return {
    events: events.length,
    calls: events.filter((ev) => ev.type === "llm_tool_call").length,
    failed: events.filter(isFailed).length,
  };
}
