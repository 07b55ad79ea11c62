import { describe as group, expect, it } from "vitest";
import { MEMORY } from "../fixtures/metrics";
import { CHART, describe, lineOf, seriesOf, written } from "../src/logic/series";

const shape = (values: string, head = "series up{job=\"a\"}\n  now 1 at 2026-11-22T03:10:00Z") => `${head}\n  shape 2026-11-22T03:00:00Z +60s: ${values}`;
const one = (values: string, head?: string) => {
  const [found] = seriesOf(shape(values, head));
  if (!found) throw new Error("no series");
  return found;
};

group("series of a result", () => {
  it("are read with title, values, gaps and onset", () => {
    const [memory, ...others] = seriesOf(MEMORY);
    expect(others).toHaveLength(1);
    expect(memory?.title).toContain("container_memory_working_set_bytes");
    expect([memory?.unit, memory?.step, memory?.values.length, memory?.values.filter((value) => value === null).length]).toEqual(["bytes", 300, 24, 2]);
    expect(memory?.onset).toBe(Date.parse("2026-11-22T02:20:00Z") / 1000);
  });

  it.each([
    ["", 0],
    ["no series in the range", 0],
    [shape("1 2 x"), 0],
    [shape("- - -"), 0],
    [shape("1").replace("+60s", "+0s"), 0],
    [shape("1").replace("2026-11-22T03:00:00Z +", "yesterday +"), 0],
    ["  shape 2026-11-22T03:00:00Z +60s: 1 2", 0],
    [`${shape("1 2")}\n${shape("3 4")}`, 2],
    [`${shape("1 2")}\nseries cut off {`, 1],
  ])("are %# drawn from whole ones only", (text, count) => {
    expect(seriesOf(text)).toHaveLength(count);
  });

  it("have at most the values that a picture has", () => {
    expect(one(Array.from({ length: 40 }, (_, at) => at).join(" ")).values).toHaveLength(24);
  });
});

group("a line chart", () => {
  it("has the lowest value at the bottom and the highest at the top, from edge to edge", () => {
    expect(lineOf(one("0 10 5")).segments).toEqual([[[0, CHART.height], [CHART.width / 2, 0], [CHART.width, CHART.height / 2]]]);
  });

  it("ends its line at a gap and begins another after it", () => {
    expect(lineOf(one("1 - 3 - - 4 5")).segments.map((points) => points.length)).toEqual([1, 1, 2]);
  });

  it("draws a flat line in the middle, and one value alone", () => {
    expect(lineOf(one("7 7")).segments).toEqual([[[0, CHART.height / 2], [CHART.width, CHART.height / 2]]]);
    expect(lineOf(one("7")).segments).toEqual([[[0, CHART.height / 2]]]);
  });

  it.each([
    ["100 101", 95.5, 105.5],
    ["90 100", 90, 100],
    ["-100 -100", -105, -95],
    ["0 0", 0, 0],
  ])("of %s has an axis from %d to %d", (values, bottom, top) => {
    const line = lineOf(one(values));
    expect(line.bottom).toBeCloseTo(bottom, 0);
    expect(line.top).toBeCloseTo(top, 0);
    expect(line.segments.flat().every(([, y]) => y >= 0 && y <= CHART.height)).toBe(true);
  });

  it.each([
    ["2026-11-22T03:00:00Z", 0],
    ["2026-11-22T03:01:00Z", CHART.width / 2],
    ["2026-11-22T03:02:00Z", CHART.width],
    ["2026-11-22T03:04:00Z", null],
    ["2026-11-22T02:59:59Z", null],
    ["whenever", null],
  ])("marks an onset at %s at x = %s", (at, x) => {
    expect(lineOf(one("1 2 3", `series up\n  now 3 | onset ${at} (change of level: 1 -> 3)`)).onsetX).toBe(x);
  });

  it("is described in words, with onset and gaps", () => {
    const text = describe(one("1 - 3", "series up{job=\"a\"}\n  onset 2026-11-22T03:01:00Z (first > 2: 1 -> 3)"));
    expect(text).toMatch(/^up\{job="a"\} from .*: lowest 1, highest 3, last 3; onset at .*; 1 of 3 values missing$/);
  });
});

group("a value", () => {
  it.each([
    [0, "bytes", "0 B"],
    [1023, "bytes", "1020 B"],
    [1024, "bytes", "1 KiB"],
    [536870912, "bytes", "512 MiB"],
    [-2048, "bytes", "-2 KiB"],
    [0.25, "seconds", "250 ms"],
    [1, "seconds", "1 s"],
    [0, "seconds", "0 s"],
    [0.123456, "", "0.123"],
    [0.0001, "", "1.00e-4"],
    [1234567, "", "1.23e+6"],
    [0, "", "0"],
  ] as const)("%s %s is written %s", (value, unit, text) => {
    expect(written(value, unit)).toBe(text);
  });
});
