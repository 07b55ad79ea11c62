/** Reports of usage and quality: what is shown, the cost of a finding, verdicts, outcomes and courses of suites. */
import { afterEach, describe, expect, it, vi } from "vitest";
import type { DailyUsage, Quality } from "../src/api/types";
import { costOfFinding, measureOf, outcomeChart, passShare, suiteCourses, usageChart, verdictChart, type EvalResult } from "../src/logic/usage";
import { readDays } from "../src/logic/route";
import { zoneName } from "../src/logic/zone";

const days = [{ date: "2026-11-21", starts: "2026-11-21T00:00:00Z" }, { date: "2026-11-22", starts: "2026-11-22T00:00:00Z" }];
const item = { name: "total", investigations: 4, findings: 3, calls: 9, interrupted: 0, inputTokens: 900, outputTokens: 90, thinkingTokens: 0, cachedTokens: 0, callsOfUnknownUsage: 0, costUSD: 6 as number | null, callsOfUnknownCost: 0 };
const report: DailyUsage = { by: "chain", timeZone: "UTC", days, total: item, items: [item], omitted: 0, series: [{ name: "shop/quick", costUSD: [1, null], tokens: [10, 20] }, { name: null, costUSD: [0, 5], tokens: [0, 50] }] };
const result = (suite: string, run: string, changes: Partial<EvalResult> = {}): EvalResult => ({ namespace: "shop", suite, run, chain: "shop/quick", finishedAt: "2026-11-21T08:00:00Z", verdict: "Passed", samples: 4, passed: 3, ...changes });
const quality: Quality = {
  timeZone: "UTC", days, findings: [2, 1], outcomes: [{ settled: 1, changedAndSettled: 0, recurred: 0 }, { settled: 0, changedAndSettled: 0, recurred: 1 }],
  reviews: { days: [{ right: 1, partly: 0, wrong: 0 }, { right: 0, partly: 1, wrong: 2 }], byConfidence: [] }, evaluations: null,
};

describe("usage", () => {
  it.each([["0", 30], ["1", 1], ["366", 366], ["367", 30], ["7.9", 7], ["x", 30], [null, 30]])("of %s days is of %i", (text, found) => {
    expect(readDays(text)).toBe(found);
  });

  it("shows the cost, and tokens where no cost is known, unless the URL names one", () => {
    const unpriced = { ...report, total: { ...item, costUSD: null } };
    expect([measureOf(null, report), measureOf(null, unpriced), measureOf("cost", unpriced), measureOf(null, null)]).toEqual(["cost", "tokens", "cost", "cost"]);
    expect(measureOf(null, { ...unpriced, total: { ...unpriced.total, calls: 0 } })).toBe("cost");
  });

  it("is a chart of the series and the others", () => {
    expect(usageChart(report, "cost")).toMatchObject({ unit: "dollars", series: [{ name: "shop/quick", values: [1, null] }, { name: "All others", values: [0, 5] }] });
    expect(usageChart(report, "tokens")).toMatchObject({ unit: "tokens", series: [{ values: [10, 20] }, { values: [0, 50] }] });
  });

  it.each([[6, 3, 2], [6, 0, null], [null, 3, null], [0, 3, 0]])("of $%s and %i findings costs %s a finding", (costUSD, findings, found) => {
    expect(costOfFinding({ costUSD, findings })).toBe(found);
  });
});

describe("quality", () => {
  it("has verdicts by day, unless one may not see them", () => {
    expect(verdictChart(quality)?.series.map(({ name, values }) => [name, values])).toEqual([["Right", [1, 0]], ["Partly", [0, 1]], ["Wrong", [0, 2]]]);
    expect(verdictChart({ ...quality, reviews: null })).toBeNull();
  });

  it("has outcomes by day", () => {
    expect(outcomeChart(quality).series.map(({ name, values }) => [name, values])).toEqual([["Settled", [1, 0]], ["Changed, settled", [0, 0]], ["Recurred", [0, 1]]]);
  });

  it("has a course for each suite, the oldest result first, without runs that measured nothing", () => {
    const { courses, hidden } = suiteCourses([result("b", "b-2"), result("a", "a-1"), result("b", "b-1"), result("c", "c-1", { samples: 0 })]);
    expect(courses.map(({ name, results }) => [name, results.map((one) => one.run)])).toEqual([["shop/b", ["b-1", "b-2"]], ["shop/a", ["a-1"]]]);
    expect([hidden, passShare(result("a", "a-1")), passShare(result("a", "a-1", { samples: 0 }))]).toEqual([0, 0.75, 0]);
  });

  it.each([[8, 8, 0], [9, 8, 1]])("draws of %i suites %i, and says that %i are not drawn", (suites, drawn, hidden) => {
    const found = suiteCourses(Array.from({ length: suites }, (_, n) => result(`s${n}`, `s${n}-1`)));
    expect([found.courses.length, found.hidden]).toEqual([drawn, hidden]);
  });
});

describe("the zone of a report", () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each([["Europe/Berlin", "Europe/Berlin"], ["Etc/Unknown", "UTC"], [undefined, "UTC"]])("of a browser in %s is %s", (timeZone, found) => {
    vi.stubGlobal("Intl", { ...Intl, DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone }) }) });
    expect(zoneName()).toBe(found);
  });

  it("is UTC where it is selected", () => {
    vi.stubGlobal("localStorage", { getItem: () => "utc" });
    expect(zoneName()).toBe("UTC");
  });
});
