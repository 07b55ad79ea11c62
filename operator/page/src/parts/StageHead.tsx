/** Heads the events of a stage: its state, its agents, and one line about it where it is folded. */
import { counted } from "../logic/format";
import type { StageSummary } from "../logic/folds";
import type { Row } from "../logic/timeline";
import { ACTIONS, STEPS } from "../words";
import { ActedMark } from "./ActedMark";
import { Badge } from "./parts";

type Props = {
  row: Row & { kind: "stage" };
  onAgent: (execution: string | null) => void;
  /** What the folded stage contains; null: it is open; undefined: it cannot be folded. */
  summary?: StageSummary | null | undefined;
  onFold: () => void;
};

export function StageHead({ row, onAgent, summary, onFold }: Props) {
  return (
    <div className="stage-row" id={`stage-${row.stage}`}>
      <h3>
        {summary === undefined ? row.name : (
          <button type="button" className="fold-stage" aria-expanded={summary === null} onClick={onFold}>
            <span aria-hidden="true">{summary === null ? "▾" : "▸"}</span> {row.name}
          </button>
        )}
      </h3>
      {row.state && <Badge state={row.state} of="step" />}
      <ActedMark acted={row.acted} state={row.state} />
      {summary && (
        <span className="hint">
          {row.agents.map((agent) => agent.name).join(", ")} · {counted(summary.events, "events")}, {counted(summary.calls, "toolCalls")}
          {summary.failed > 0 && <span className="bad">, {summary.failed} {STEPS.failed}</span>}
        </span>
      )}
      {!summary && row.agents.length > 1 && (
        <div className="tabs" role="group" aria-label={`Agents of ${row.name}`}>
          <button type="button" aria-pressed={row.chosen === null} onClick={() => onAgent(null)}>{ACTIONS.allAgents}</button>
          {row.agents.map((agent) => (
            <button type="button" key={agent.execution} aria-pressed={row.chosen === agent.execution} onClick={() => onAgent(agent.execution)}>
              {agent.name}
              {agent.streaming && <span className="live-dot" aria-label="live" role="img" />}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
