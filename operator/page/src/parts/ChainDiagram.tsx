/** Draws the chain of a run: its stages in a row, with their agents and states. */
import { memo } from "react";
import type { Investigation, StageChange } from "../api/types";
import { between, cost, step, words } from "../logic/format";
import { isFinished } from "../logic/timeline";
import { ESCALATION } from "../words";
import { ActedMark } from "./ActedMark";

type Props = { item: Investigation; stages: ReadonlyMap<number, StageChange>; onStage: (id: string) => void };

export const ChainDiagram = memo(function ChainDiagram({ item, stages, onStage }: Props) {
  const begun = new Set(item.stages.map((stage) => stage.index));
  const told = [...stages.values()].filter((stage) => !begun.has(stage.index));
  const known = item.stages.length + told.length;
  const planned = isFinished(item.state) ? 0 : Math.max(0, item.progress.stagesPlanned - known);
  const now = Date.now();
  const twice = item.stages.some((stage) => stage.kind === "escalation");
  return (
    <ol className="chain" aria-label="Stages">
      {item.stages.map((stage) => {
        const state = stages.get(stage.index)?.state ?? stage.state;
        return (
          <li key={stage.id} className={`stage state-${state}`}>
            <button type="button" onClick={() => onStage(stage.id)} title={stage.failure?.message}>
              <span className="stage-head">
                <span className="dot" aria-hidden="true" />
                <strong>{stage.name}</strong>
                {stage.kind === "escalation" && <span className="tag" title={ESCALATION.title}>{ESCALATION.word}</span>}
                <span className="visually-hidden">{step(state)}</span>
                <span className="hint">{between(stage.startedAt, stage.finishedAt, now)}</span>
                <ActedMark acted={stages.get(stage.index)?.acted ?? stage.acted} state={state} />
              </span>
              <span className="agents">
                {stage.agents.map((agent) => (
                  <span key={agent.id} className={`agent state-${agent.state}`} title={`${agent.strategy}, ${agent.provider} ${agent.model}`}>
                    <span className="dot" aria-hidden="true" />
                    {agent.name}
                    {twice && stage.kind !== "executive_summary" && <span className="hint"> {agent.provider}, {cost(agent.spent)}</span>}
                    <span className="visually-hidden"> {step(agent.state)}</span>
                  </span>
                ))}
                {stage.agents.length === 0 && <span className="agent hint">{words(stage.kind)}</span>}
              </span>
            </button>
          </li>
        );
      })}
      {told.map((stage) => (
        <li key={stage.index} className={`stage state-${stage.state}`}>
          <span className="stage-box">
            <span className="stage-head"><span className="dot" aria-hidden="true" /><strong>{stage.name}</strong></span>
          </span>
        </li>
      ))}
      {planned > 0 && (
        <li className="stage planned">
          <span className="stage-box">
            <span className="hint">{known > 0 ? `${planned} more planned` : `${planned} planned`}</span>
          </span>
        </li>
      )}
    </ol>
  );
});
