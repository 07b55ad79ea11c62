/** Charts of days: weeks, sums of what is known, words, labels and keys. */
import { describe, expect, it } from "vitest";
import { chartOfDays, describeBucket, describeChart, isEmpty, isUnknown, labelled, moved, sumOf, tick, toneOf, topOf, totalOf, written, writtenSum, type Chart } from "../src/logic/chart";

const dates = (days: number) => Array.from({ length: days }, (_, at) => new Date(Date.UTC(2026, 9, 1 + at)).toISOString().slice(0, 10));
const chart = (values: (number | null)[], other: (number | null)[] = values.map(() => 0)): Chart => chartOfDays("dollars", dates(values.length), [{ name: "a", values }, { name: "b", values: other }], 100);

describe("a chart of days", () => {
  it.each([[30, 30, 30], [31, 30, 5], [29, 30, 29]])("of %i days with at most %i has %i bars", (days, most, bars) => {
    const made = chartOfDays("tokens", dates(days), [{ name: "a", values: dates(days).map(() => 1) }], most);
    expect(made.buckets).toHaveLength(bars);
    expect(sumOf(made.series[0]?.values ?? [])).toBe(days);
  });

  it("has weeks that end today, and an incomplete first one", () => {
    const made = chartOfDays("tokens", dates(10), [{ name: "a", tone: "good", values: [1, 1, 1, 0, 0, 0, 0, 0, 0, 5] }], 9);
    expect(made.buckets.map((one) => one.title)).toEqual(["1 Oct to 3 Oct", "4 Oct to 10 Oct"]);
    expect(made.series[0]).toEqual({ name: "a", tone: "good", values: [3, 5] });
  });

  it("does not take what is not known for nothing", () => {
    expect([sumOf([null, null]), sumOf([null, 0]), sumOf([null, 2]), sumOf([0]), sumOf([])]).toEqual([null, null, 2, 0, 0]);
    expect([[null, 0], [null, 2], [1, 2], [0]].map((values) => writtenSum("dollars", values))).toEqual(["–", "$2.00+", "$3.00", "$0"]);
    const made = chart([1, null, null], [0, null, 4]);
    expect([0, 1, 2].map((at) => totalOf(made, at))).toEqual([1, null, 4]);
    expect([0, 1, 2].map((at) => isUnknown(made, at))).toEqual([false, true, true]);
    expect([isEmpty(made), isEmpty(chart([0, null]))]).toEqual([false, true]);
  });

  it("has an axis with a length where nothing is counted", () => {
    expect([topOf(chart([0, 0])), topOf(chart([3, 0], [4, 0]))]).toEqual([1, 7]);
  });

  it("is described in words", () => {
    const made = chart([1, 2.5], [0, 4]);
    expect(describeBucket(made, 0)).toBe("1 Oct: $1.00");
    expect(describeBucket(made, 1)).toBe("2 Oct: $6.50 (a $2.50, b $4.00)");
    expect(describeChart("Cost", made)).toBe("Cost, 1 Oct to 2 Oct: $7.50; highest 2 Oct: $6.50 (a $2.50, b $4.00)");
  });
});

describe("values", () => {
  it.each([["dollars", 12.5, "$12.50", "$12.50"], ["dollars", 5, "$5.00", "$5"], ["tokens", 12_000, "12K", "12K"], ["percent", 0.25, "25%", "25%"], ["findings", 3, "3", "3"]] as const)("of %s: %d", (unit, value, text, axis) => {
    expect([written(unit, value), tick(unit, value)]).toEqual([text, axis]);
  });

  it("that are not known are a dash", () => {
    expect(written("dollars", null)).toBe("–");
  });
});

describe("series", () => {
  it("beyond those that differ look like the others", () => {
    expect([toneOf({}, 0), toneOf({}, 8), toneOf({}, 12), toneOf({ tone: "bad" }, 3)]).toEqual(["tone-0", "tone-8", "tone-8", "bad"]);
  });
});

describe("labels", () => {
  it.each([[30, 1200, 15], [30, 300, 5], [1, 300, 1], [0, 300, 0], [5, 0, 1]])("of %i bars in %i pixels are %i", (bars, width, labels) => {
    const found = labelled(bars, width, 64);
    expect(found).toHaveLength(labels);
    if (bars > 0) expect(found.at(-1)).toBe(bars - 1);
  });
});

describe("keys", () => {
  it.each([["ArrowLeft", null, 4], ["ArrowLeft", 4, 3], ["ArrowLeft", 0, 0], ["ArrowRight", 3, 4], ["ArrowRight", 4, 4], ["Home", 3, 0], ["End", 1, 4], ["a", 1, null]])("%s at %s selects %s of five", (key, from, to) => {
    expect(moved(key, from, 5)).toBe(to);
  });

  it("select nothing where there is nothing", () => {
    expect(moved("End", null, 0)).toBeNull();
  });
});
