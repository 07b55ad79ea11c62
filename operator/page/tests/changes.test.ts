import { describe, expect, it } from "vitest";
import { CHANGES } from "../fixtures/changes";
import { call, event, told } from "../fixtures/build";
import type { Changes } from "../src/api/types";
import { firstOf, isEmpty, marksOf, nameOf, relative } from "../src/logic/changes";
import { EMPTY, eventOfTool, reduce } from "../src/logic/timeline";

const ONSET = "2026-11-22T03:04:00Z";

describe("the strip of changes", () => {
  it("is empty without changes and signals, and not with either", () => {
    const nothing: Changes = { ...CHANGES, changes: [], signals: [] };
    expect([isEmpty(nothing), isEmpty({ ...nothing, signals: CHANGES.signals }), isEmpty({ ...nothing, changes: CHANGES.changes })]).toEqual([true, false, false]);
  });

  it("names the first candidate, never a consequence", () => {
    expect(firstOf(CHANGES)?.object.name).toBe("checkout-config");
    expect(firstOf({ ...CHANGES, changes: CHANGES.changes.filter((one) => one.order !== "Candidate") })).toBeNull();
  });

  it("names objects with and without a namespace", () => {
    expect([nameOf({ kind: "Pod", namespace: "shop", name: "a" }), nameOf({ kind: "Node", namespace: "", name: "n1" })]).toEqual(["Pod shop/a", "Node n1"]);
  });

  it.each([
    ["2026-11-22T03:03:41Z", ONSET, "19 s before the onset"],
    ["2026-11-22T03:05:30Z", ONSET, "1 m 30 s after the onset"],
    [ONSET, ONSET, "at the onset"],
    [ONSET, null, ""],
    ["not a time", ONSET, ""],
  ])("tells the time of %s relative to %s", (at, onset, expected) => {
    expect(relative(at, onset)).toBe(expected);
  });
});

describe("the line of changes", () => {
  const at = (...times: string[]): Changes => ({ ...CHANGES, onset: ONSET, changes: CHANGES.changes.slice(0, times.length).map((one, place) => ({ ...one, at: times[place] ?? "" })) });

  it("puts changes on their side of the onset, in the order of time, within the line", () => {
    const { onset, marks } = marksOf(at("2026-11-21T23:10:00Z", "2026-11-22T03:03:41Z", "2026-11-22T03:04:00Z", "2026-11-22T03:09:00Z"));
    const places = marks.map((mark) => mark.at);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[2]).toBe(onset);
    expect([places[0], places[3]]).toEqual([2, 98]);
  });

  it("leaves room between changes that are seconds and hours away", () => {
    const { onset, marks } = marksOf(at("2026-11-21T23:10:00Z", "2026-11-22T03:03:41Z"));
    expect((onset ?? 0) - (marks[1]?.at ?? 0)).toBeGreaterThan(10);
  });

  it("has no onset where nothing says so, and survives a single change and a bad time", () => {
    expect(marksOf({ ...at("2026-11-22T03:03:41Z"), onset: null })).toEqual({ onset: null, marks: [{ at: 50, order: "Candidate" }] });
    expect(marksOf(at("bad")).marks).toEqual([]);
    expect(marksOf({ ...at(), onset: null }).marks).toEqual([]);
  });
});

describe("the call of a tool", () => {
  it("is the first of its name in the investigation, not in a question", () => {
    const question = { name: "q", uid: "q", place: 1 };
    const asked = call("asked", "tarsy.changes", {}, "");
    const own = call("own", "tarsy.changes", {}, "");
    const timeline = reduce(EMPTY, [told(asked, question), told(event("llm_response", "")), told(own)]);
    expect([eventOfTool(timeline, "tarsy.changes")?.toolCall, eventOfTool(timeline, "tarsy.triage")]).toEqual(["own", undefined]);
  });
});
