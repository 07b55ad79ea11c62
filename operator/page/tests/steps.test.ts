import { describe, expect, it } from "vitest";
import { lineOfStep, stepsOf } from "../src/logic/agentSteps";
import { stageHolding, withoutClosed } from "../src/logic/folds";
import { foldedRows, holdsEvent, type FoldedRow } from "../src/logic/stepRows";
import { EMPTY, reduce, type Ev } from "../src/logic/timeline";
import { call, event, told } from "../fixtures/build";

const of = (agent: string) => ({ agent, execution: agent });
const turn = (agent: string) => [event("llm_thinking", "Hm.", of(agent)), event("llm_response", "I look.", of(agent)), call("c", "kubernetes.get_logs", {}, "", of(agent)), call("d", "kubernetes.get_logs", {}, "", of(agent))];
const evs = (all: ReturnType<typeof event>[]) => [...reduce(EMPTY, all.map((one) => told(one))).events.values()] as Ev[];
const rowsOfRun = (lanes: number, closed: readonly string[] = []) => {
  const all = [event("notice", "It runs.", { execution: null, agent: null }), ...turn("one"), ...turn("one"), ...turn("two"), event("final_analysis", "It is known.", of("two"))];
  return { all, rows: foldedRows(reduce(EMPTY, all.map((one) => told(one))), new Map(), lanes, new Set(closed)) };
};
const shape = (rows: readonly FoldedRow[]) => rows.map((row) => (row.kind === "steps" ? row.steps.map((step) => step?.events.length ?? 0) : row.kind === "agents" ? row.agents.map((agent) => `${agent.name}: ${agent.steps}`) : row.kind));

describe("steps of an agent", () => {
  it("begin where the model speaks after its calls", () => {
    expect(stepsOf(evs([...turn("one"), ...turn("one")])).map((step) => [step.number, step.events.length])).toEqual([[1, 4], [2, 4]]);
  });

  it("are one for each response without calls, and never longer than fifty events", () => {
    expect(stepsOf(evs(["a", "b", "c"].map((text) => event("llm_response", text)))).length).toBe(3);
    const many = Array.from({ length: 51 }, (_, n) => call(`${n}`, "tool", {}, ""));
    expect(stepsOf(evs(many.slice(0, 50))).map((step) => step.events.length)).toEqual([50]);
    expect(stepsOf(evs(many)).map((step) => step.events.length)).toEqual([50, 1]);
  });

  it("are told in one line: what was said, each tool once, and what failed", () => {
    const failing = call("e", "prometheus.query", {}, "", { ...of("one"), metadata: { name: "prometheus.query", arguments: "{}", is_error: true } });
    const [step] = stepsOf(evs([...turn("one"), failing]));
    expect(step && lineOfStep(step)).toEqual({ text: "I look.", tools: [{ name: "kubernetes.get_logs", count: 2 }, { name: "prometheus.query", count: 1 }], failed: 1 });
  });
});

describe("a folded timeline", () => {
  it("shows the events of a stage, then one agent after the other", () => {
    expect(shape(rowsOfRun(0).rows)).toEqual(["stage", "event", ["one: 2"], [4], [4], ["two: 2"], [4], [1]]);
  });

  it("shows agents side by side where they have room", () => {
    expect(shape(rowsOfRun(2).rows)).toEqual(["stage", "event", ["one: 2", "two: 2"], [4, 4], [4, 1]]);
    expect(shape(rowsOfRun(1).rows)).toEqual(shape(rowsOfRun(0).rows));
  });

  it("shows a folded agent as one line, beside others too", () => {
    expect(shape(rowsOfRun(0, ["one"]).rows)).toEqual(["stage", "event", ["one: 2"], ["two: 2"], [4], [1]]);
    expect(shape(rowsOfRun(2, ["one"]).rows)).toEqual(["stage", "event", ["one: 2", "two: 2"], [0, 4], [0, 1]]);
  });

  it("finds the row and the stage of an event, and hides agents and steps of a folded stage", () => {
    const { all, rows } = rowsOfRun(2);
    const last = all.at(-1)?.id ?? "";
    expect(rows.findIndex((row) => holdsEvent(row, last))).toBe(4);
    expect([stageHolding(rows, last), stageHolding(rows, "none")]).toEqual(["stage-0", null]);
    expect(withoutClosed(rows, new Set(["stage-0"])).length).toBe(1);
  });
});
