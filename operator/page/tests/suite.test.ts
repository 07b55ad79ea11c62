import { describe, expect, it } from "vitest";
import type { EvalSuite, SuiteCell } from "../src/api/types";
import { compareLink, parse, suiteLink } from "../src/logic/route";
import { casesByNeed, judgeInFull, judgeOf, marksOf, segments, sentenceOf, signOf, stateOfOutcome, stateOfVerdict } from "../src/logic/suite";
import { MARKS } from "../src/words";

const cell = (changes: Partial<SuiteCell> = {}): SuiteCell => ({
  asked: 3, passed: 3, failed: 0, inconclusive: 0, outcome: "Passed", flaky: false, regressed: false, improved: false, confidentWrong: 0, coverage: 1, rungs: { exact: 4 }, tokens: 1, costUSD: null, costComplete: true, ...changes,
});

describe("a cell", () => {
  it("has a mark for each thing to look at, the most serious first", () => {
    expect(marksOf(cell())).toEqual([]);
    expect(marksOf(cell({ outcome: "Failed", regressed: true, flaky: true, confidentWrong: 1 }))).toEqual(["regressed", "confidentlyWrong", "flaky"]);
    expect(marksOf(cell({ outcome: "Failed" }))).toEqual(["failed"]);
    expect(marksOf(cell({ outcome: "Inconclusive" }))).toEqual(["inconclusive"]);
    expect(marksOf(cell({ improved: true }))).toEqual(["improved"]);
  });

  it("has no mark that only a colour tells apart", () => {
    const signs = (Object.keys(MARKS) as (keyof typeof MARKS)[]).map(signOf);
    expect(new Set(signs).size).toBe(signs.length);
  });

  it("is a sentence for screen readers", () => {
    expect(sentenceOf(cell({ passed: 1, failed: 0, inconclusive: 1, outcome: null, coverage: 0.505, rungs: { miss: 1, exact: 2 } }))).toBe("1 of 3 samples passed, 1 have not ended, 1 inconclusive, coverage 51%, 2 exact, 1 miss");
  });
});

describe("the bar of rungs", () => {
  it("begins with the best, fills the whole, and keeps rungs of a newer server", () => {
    const found = segments({ miss: 1, later: 1, exact: 2, live: 0 });
    expect(found.map((one) => [one.rung, one.left, one.width])).toEqual([["exact", 0, 50], ["miss", 50, 25], ["later", 75, 25]]);
    expect(segments({})).toEqual([]);
  });
});

describe("the judge of a run", () => {
  it("is told with its agreement and cost", () => {
    const judge = { role: "Gates" as const, sentence: null, kappa: 0.8125, answers: 24, calls: 2, failedCalls: 0, tokens: 100, costUSD: 0.5, costComplete: false };
    expect(judgeOf(judge)).toBe("judge decides, kappa 0.81, $0.50+");
    expect(judgeOf({ ...judge, role: null, kappa: null, costUSD: null })).toBe("judge is being measured, –");
    expect(judgeInFull({ ...judge, sentence: "It decides." })).toBe("It decides. 2 calls, 0 of them failed, 100 tokens.");
  });
});

describe("cases", () => {
  it("that got worse in the newest run come first", () => {
    const cells: [string, SuiteCell | null][] = [["a", cell()], ["b", cell({ flaky: true })], ["c", null], ["d", cell({ outcome: "Failed" })], ["e", cell({ outcome: "Failed", regressed: true })]];
    const suite = { cases: cells.map(([name, one]) => ({ name, inSuite: true, cells: [one] })) } as unknown as EvalSuite;
    expect(casesByNeed(suite).map((one) => one.name)).toEqual(["e", "d", "b", "a", "c"]);
  });
});

describe("verdicts and outcomes", () => {
  it("have a badge, also those that only a newer server knows", () => {
    expect(["Passed", "Regressed", "Insufficient", "Cancelled", "Later", null].map(stateOfVerdict)).toEqual(["completed", "failed", "cancelled", "cancelled", "pending", "running"]);
    expect(["Passed", "Failed", "Inconclusive", null].map(stateOfOutcome)).toEqual(["completed", "failed", "cancelled", "running"]);
  });
});

describe("links", () => {
  it("are read as they are written", () => {
    expect(parse(suiteLink("shop", "checkout", "before", "oom"))).toEqual({ view: "suite", namespace: "shop", name: "checkout", run: "before", kase: "oom" });
    expect(parse(suiteLink("shop", "checkout"))).toEqual({ view: "suite", namespace: "shop", name: "checkout", run: null, kase: null });
    expect(parse("#/suites")).toEqual({ view: "suites" });
    expect(parse(compareLink("shop", "a", "b"))).toEqual({ view: "compare", namespace: "shop", first: "a", second: "b" });
    expect(parse("#/compare/shop/a")).toEqual({ view: "nowhere" });
  });
});
