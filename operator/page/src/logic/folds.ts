/** Folds the stages of a timeline to one line each. */
import { holds, type Row } from "./timeline";

function stageOf(row: Row): string | null {
  if (row.kind === "stage") return null;
  const events = row.kind === "lanes" ? row.events : [row.ev];
  return events.find((ev) => ev !== null)?.stageId ?? null;
}

/** Returns the rows without those of closed stages; the heads of the stages stay. */
export function withoutClosed(rows: readonly Row[], closed: ReadonlySet<string>): readonly Row[] {
  return closed.size === 0 ? rows : rows.filter((row) => !closed.has(stageOf(row) ?? ""));
}

/** Returns the stage that shows an event; null: none does. */
export function stageHolding(rows: readonly Row[], event: string): string | null {
  const row = rows.find((one) => holds(one, event));
  return row ? stageOf(row) : null;
}

export type StageSummary = { events: number; calls: number; failed: number };

/** Counts the events of a stage, the tool calls among them, and those that failed. */
export function summaryOf(rows: readonly Row[], stage: string): StageSummary {
  const events = rows.filter((row) => stageOf(row) === stage).flatMap((row) => (row.kind === "lanes" ? row.events : row.kind === "event" ? [row.ev] : [])).filter((ev) => ev !== null);
  return {
    events: events.length,
    calls: events.filter((ev) => ev.type === "llm_tool_call").length,
    failed: events.filter((ev) => ev.type === "error" || ev.metadata["is_error"] === true).length,
  };
}
