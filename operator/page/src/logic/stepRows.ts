/** Folds the timeline of a finished run by stage, agent and step. */
import { isFailed, stepsOf, type AgentStep } from "./agentSteps";
import { rowsOf, type AgentTab, type Ev, type Row, type Timeline } from "./timeline";

export type AgentLine = AgentTab & { steps: number; calls: number; failed: number };

/** A row of a folded timeline; `agents` and `steps` have one cell, or one for each agent that is shown side by side. */
export type FoldedRow =
  | Row
  | { kind: "agents"; key: string; stage: string; agents: readonly AgentLine[] }
  | { kind: "steps"; key: string; stage: string; steps: readonly (AgentStep | null)[] };

/**
 * Returns stage heads; below each, the events of the stage itself, then its agents with their steps.
 *
 * `chosen` and `lanes` are those of `rowsOf`. Agents in `closed` are returned without their steps.
 */
export function foldedRows(timeline: Timeline, chosen: ReadonlyMap<string, string>, lanes: number, closed: ReadonlySet<string>): FoldedRow[] {
  const rows: FoldedRow[] = [];
  let stage: (Row & { kind: "stage" }) | null = null;
  let events: Ev[] = [];
  const end = () => {
    if (stage) rows.push(stage, ...ofStage(stage, events, lanes, closed));
    stage = null;
    events = [];
  };
  for (const row of rowsOf(timeline, chosen)) {
    if (row.kind === "event" && stage && row.ev.stageId === (stage as Row & { kind: "stage" }).stage) events.push(row.ev);
    else {
      end();
      if (row.kind === "stage") stage = row;
      else rows.push(row);
    }
  }
  end();
  return rows;
}

function ofStage({ stage, agents, chosen }: Row & { kind: "stage" }, events: readonly Ev[], lanes: number, closed: ReadonlySet<string>): FoldedRow[] {
  const own = events.filter((ev) => ev.execution === null).map((ev): FoldedRow => ({ kind: "event", key: ev.id, ev }));
  const shown = agents
    .filter((agent) => chosen === null || agent.execution === chosen)
    .map((agent) => {
      const all = events.filter((ev) => ev.execution === agent.execution);
      const steps = stepsOf(all);
      const line = { ...agent, steps: steps.length, calls: all.filter((ev) => ev.type === "llm_tool_call").length, failed: all.filter(isFailed).length };
      return { line, steps: closed.has(agent.execution) ? [] : steps };
    });
  const together = shown.length > 1 && shown.length <= lanes ? [shown] : shown.map((one) => [one]);
  return [...own, ...together.flatMap((beside): FoldedRow[] => {
    const longest = Math.max(0, ...beside.map(({ steps }) => steps.length));
    const key = beside.map(({ line }) => line.execution).join();
    return [
      { kind: "agents", key: `agents ${key}`, stage, agents: beside.map(({ line }) => line) },
      ...Array.from({ length: longest }, (_, n): FoldedRow => ({ kind: "steps", key: `steps ${key} ${n}`, stage, steps: beside.map(({ steps }) => steps[n] ?? null) })),
    ];
  })];
}

/** Returns whether a row shows an event. */
export function holdsEvent(row: FoldedRow, event: string): boolean {
  switch (row.kind) {
    case "steps":
      return row.steps.some((step) => step?.events.some((ev) => ev.id === event));
    case "lanes":
      return row.events.some((ev) => ev?.id === event);
    case "event":
      return row.ev.id === event;
    default:
      return false;
  }
}
