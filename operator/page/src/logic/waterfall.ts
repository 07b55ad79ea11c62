/** Scales the calls of a trace to bars: 0 is the start of the first call, 100 the end of the last. */
import type { Trace } from "../api/types";

export type Bar = {
  id: string;
  kind: "llm" | "mcp";
  name: string;
  state: string;
  bad: boolean;
  started: number;
  milliseconds: number | null;
  left: number;
  width: number;
};
export type AgentBars = { id: string; name: string; about: string; bars: Bar[] };
export type StageBars = { id: string; name: string; state: string; agents: AgentBars[] };

export function bars(trace: Trace, now: number = Date.now()): StageBars[] {
  const stages = trace.stages.map((stage) => ({
    id: stage.id,
    name: stage.name,
    state: stage.state,
    agents: stage.agents.map((agent) => ({
      id: agent.id,
      name: [stage.agents.find((one) => one.id === agent.parent)?.name, agent.name].filter(Boolean).join(" › "),
      about: `${agent.strategy} · ${agent.model}`,
      bars: [
        ...agent.llm.map((call) => bar(call, "llm", `${call.kind === "iteration" ? "model" : call.kind.replaceAll("_", " ")} ${call.number + 1}`, call.failure !== null)),
        ...agent.mcp.map((call) => bar(call, "mcp", call.tool, call.refused !== null)),
      ].sort((a, b) => a.started - b.started),
    })),
  }));
  const all = stages.flatMap((stage) => stage.agents.flatMap((agent) => agent.bars));
  const begin = Math.min(...all.map((one) => one.started));
  const end = Math.max(...all.map((one) => one.started + (one.milliseconds ?? Math.max(0, now - one.started))));
  const scale = 100 / Math.max(1, end - begin);
  for (const one of all) {
    one.left = (one.started - begin) * scale;
    one.width = (one.milliseconds ?? Math.max(0, now - one.started)) * scale;
  }
  return stages;
}

type Call = { id: string; state: string; startedAt: string; finishedAt: string | null; durationMs: number | null };

function bar(call: Call, kind: Bar["kind"], name: string, bad: boolean): Bar {
  const started = Date.parse(call.startedAt);
  const milliseconds = call.durationMs ?? (call.finishedAt ? Date.parse(call.finishedAt) - started : null);
  return { id: call.id, kind, name, state: call.state, bad: bad || call.state === "failed", started, milliseconds, left: 0, width: 0 };
}
