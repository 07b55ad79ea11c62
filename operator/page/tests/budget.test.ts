import { describe, expect, it } from "vitest";
import { agent, investigation, spent, stage } from "../fixtures/build";
import { metersOf } from "../src/logic/budget";

const START = "2026-11-22T12:00:00Z";
const NOW = Date.parse(START) + 90_000;
const running = { state: "running", startedAt: START, finishedAt: null } as const;
const budget = { tokens: null, costUSD: null, toolCalls: null, minutes: null };
const named = (item: ReturnType<typeof investigation>, name: string) => metersOf(item, NOW).find((one) => one.name.startsWith(name));

describe("the limits of a run", () => {
  it("have a share of what is used, at most all of it", () => {
    const of = (tokens: number) => named(investigation({ ...running, spent: spent(tokens), budget: { ...budget, tokens: 1000 } }), "Tokens");
    expect(of(999)).toMatchObject({ used: "999", limit: "1,000", share: 0.999 });
    expect(of(1000)?.share).toBe(1);
    expect(of(1001)?.share).toBe(1);
  });

  it("are no bar where there is none, and unknown costs are not shown", () => {
    const item = investigation({ ...running, spent: spent(10, null), budget: null, deadline: null });
    expect(metersOf(item, NOW).map((one) => [one.name, one.share])).toEqual([["Tokens", null], ["Time", null]]);
  });

  it("end the time at the deadline or at the minutes of the budget, whichever is earlier", () => {
    const deadline = "2026-11-22T12:10:00Z";
    expect(named(investigation({ ...running, deadline, budget: null }), "Time")).toMatchObject({ used: "1 m 30 s", limit: "10 m 0 s" });
    expect(named(investigation({ ...running, deadline, budget: { ...budget, minutes: 3 } }), "Time")).toMatchObject({ limit: "3 m 0 s", share: 0.5 });
    expect(named(investigation({ ...running, startedAt: null, deadline }), "Time")).toBeUndefined();
  });

  it("are the iterations of the running agent that is the closest to its limit", () => {
    const agents = [
      agent("slow", { state: "running", iterations: 5, maxIterations: 20 }),
      agent("fast", { state: "running", iterations: 3, maxIterations: 4 }),
      agent("done", { iterations: 9, maxIterations: 9 }),
      agent("single", { state: "running", iterations: 1, maxIterations: null }),
    ];
    expect(named(investigation({ ...running, stages: [stage(0, "a", agents)] }), "Iterations")).toMatchObject({ name: "Iterations (fast)", used: "3", limit: "4", share: 0.75 });
    expect(named(investigation({ ...running, stages: [stage(0, "a", agents.slice(2))] }), "Iterations")).toBeUndefined();
  });
});
