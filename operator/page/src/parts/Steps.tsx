/** Shows agents and their steps as one line each; an open step shows its events. */
import { memo, type ReactNode } from "react";
import { lineOfStep, type AgentStep } from "../logic/agentSteps";
import { clock, counted } from "../logic/format";
import type { AgentLine } from "../logic/stepRows";
import { COLUMNS, STEPS } from "../words";
import { Badge } from "./parts";

type HeadProps = { agent: AgentLine; state: string | undefined; open: boolean; onFold: (execution: string) => void };

export const AgentHead = memo(function AgentHead({ agent, state, open, onFold }: HeadProps) {
  return (
    <div className="agent-row">
      <button type="button" className="fold-stage" aria-expanded={open} onClick={() => onFold(agent.execution)}>
        <span aria-hidden="true">{open ? "▾" : "▸"}</span> {agent.name}
      </button>
      {state && <Badge state={state} of="step" />}
      <span className="hint">
        {counted(agent.steps, "steps")}, {counted(agent.calls, "toolCalls")}
        {agent.failed > 0 && <span className="bad">, {agent.failed} {STEPS.failed}</span>}
      </span>
    </div>
  );
});

type StepProps = { step: AgentStep; open: boolean; onFold: () => void; children: ReactNode };

/** `children` are the events of the step, shown where it is open. */
export function StepRow({ step, open, onFold, children }: StepProps) {
  const { text, tools, failed } = lineOfStep(step);
  const first = step.events[0];
  return (
    <article className={`event step e-${first?.type}${open ? " open-step" : " folded-event"}${failed > 0 ? " failed" : ""}`}>
      <button type="button" className="fold" aria-expanded={open} onClick={onFold}>
        <span className="kind">{COLUMNS.step} {step.number}</span>
        <span className="line">{text}</span>
        {tools.length > 0 && <span className="calls">{tools.map(({ name, count }) => (count > 1 ? `${name} ×${count}` : name)).join(", ")}</span>}
        {failed > 0 && <span className="bad">{STEPS.failed}</span>}
        {first && <span className="time">{clock(first.createdAt)}</span>}
      </button>
      {open && children}
    </article>
  );
}
