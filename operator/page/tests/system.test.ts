import { describe, expect, it } from "vitest";
import type { Chain, ConfigurationItem, PlanPart, Queue, QueueItem } from "../src/api/types";
import { parse, systemLink } from "../src/logic/route";
import { describedHours, filtered, healthCounts, hoursByObject, NO_SYSTEM_QUERY, planQuestion, toneOf, warningsOf, whatIsBroken, whyNothingStarts } from "../src/logic/system";

const object = (changes: Partial<ConfigurationItem>): ConfigurationItem => ({
  kind: "MCPServer", namespace: "shop", name: "tools", uid: "1", health: "Ready", reason: "Usable", message: "", since: null, conditions: [], summary: "http", address: "http://tools:8080", lastError: null, tools: [], createdAt: null, uses: [], usedBy: [], ...changes,
});
const item = (reason: string): QueueItem => ({ kind: "Investigation", namespace: "shop", name: "i", uid: "u", investigation: null, alertType: null, chain: null, chainNamespace: null, accepted: true, replay: false, reason, message: "", since: "2026-11-22T03:00:00Z", until: null });
const queue = (changes: Partial<Queue>): Queue => ({ pending: 0, running: 0, orphaned: 0, parked: 0, workers: 1, notAccepted: 0, items: [], omitted: 0, ...changes });
const list = (items: ConfigurationItem[]) => ({ items, kinds: [], continue: null });

describe("filters of objects", () => {
  const all = [object({}), object({ name: "broken", health: "NotReady", message: "Connection refused" }), object({ kind: "Chain", name: "checkout", address: null })];

  it("contain all words, in any field and case", () => {
    const names = (search: string) => filtered(all, { ...NO_SYSTEM_QUERY, search }).map((one) => one.name);
    expect(names("REFUSED mcp")).toEqual(["broken"]);
    expect(names("tools:8080")).toEqual(["tools", "broken"]);
    expect(names("refused chain")).toEqual([]);
    expect(names("  ")).toHaveLength(3);
  });

  it("choose a kind and a health", () => {
    expect(filtered(all, { ...NO_SYSTEM_QUERY, kind: "Chain" }).map((one) => one.name)).toEqual(["checkout"]);
    expect(filtered(all, { ...NO_SYSTEM_QUERY, health: "NotReady" }).map((one) => one.name)).toEqual(["broken"]);
    expect(healthCounts(all)).toEqual([["NotReady", 1], ["Ready", 2]]);
  });
});

describe("the answer why nothing starts", () => {
  it("is the workers first", () => {
    expect(whyNothingStarts(queue({ workers: 0 }))).toEqual({ text: "No worker is alive.", bad: true });
    expect(whyNothingStarts(queue({ workers: 0, items: [item("NoWorker")] })).text).toBe("No worker is alive. Waiting: 1 NoWorker.");
  });

  it("counts reasons, the most frequent first", () => {
    const told = whyNothingStarts(queue({ items: [item("NoChain"), item("Queued"), item("NoChain")], omitted: 2 }));
    expect(told).toEqual({ text: "Waiting: 2 NoChain, 1 Queued, 2 more.", bad: true });
  });

  it("is no problem where all are next in line, or nothing waits", () => {
    expect(whyNothingStarts(queue({ items: [item("Queued")] })).bad).toBe(false);
    expect(whyNothingStarts(queue({}))).toEqual({ text: "Nothing waits.", bad: false });
  });
});

describe("the answer what is broken", () => {
  it("names three, and counts the others", () => {
    const broken = ["a", "b", "c", "d", "e"].map((name) => object({ name, health: "Degraded", reason: "Unreachable" }));
    expect(whatIsBroken(list(broken)).text).toBe("MCPServer shop/a degraded (Unreachable); MCPServer shop/b degraded (Unreachable); MCPServer shop/c degraded (Unreachable); 2 more objects.");
    expect(whatIsBroken(list([object({}), object({ health: "Unknown" })]))).toEqual({ text: "No object reports a problem.", bad: false });
  });
});

describe("hours", () => {
  it("are all of the period, the oldest first", () => {
    const found = hoursByObject({ hours: 3, items: [{ kind: "MCPServer", namespace: "shop", name: "tools", hours: [{ hoursAgo: 1, succeeded: 2, failed: 1 }] }] });
    expect(found.get("MCPServer/shop/tools")).toEqual([{ hoursAgo: 2, succeeded: 0, failed: 0 }, { hoursAgo: 1, succeeded: 2, failed: 1 }, { hoursAgo: 0, succeeded: 0, failed: 0 }]);
  });

  it("are drawn and described by what failed", () => {
    const tones = [[0, 0], [2, 0], [2, 1], [0, 3]].map(([succeeded = 0, failed = 0]) => toneOf({ hoursAgo: 0, succeeded, failed }));
    expect(tones).toEqual(["none", "good", "mixed", "bad"]);
    expect(describedHours([{ hoursAgo: 5, succeeded: 1, failed: 2 }, { hoursAgo: 0, succeeded: 1, failed: 0 }], "calls")).toBe("4 calls, 2 failed, the last 5 h");
    expect(describedHours([{ hoursAgo: 0, succeeded: 0, failed: 1 }], "runs")).toBe("1 run, 1 failed, the last in this hour");
    expect(describedHours([], "calls")).toBe("No recorded call in this period");
  });
});

describe("the plan of a chain", () => {
  const chain: Chain = { namespace: "library", name: "deep", uid: "1", ready: true, conditions: [], description: null, alertTypes: ["A", "B"], stages: [], takesQuestions: true, takesTools: true };

  it("is of the type and namespace of the address, else of the first ones", () => {
    expect(planQuestion(chain, { ...NO_SYSTEM_QUERY, type: "B", from: "shop" }, "bank")).toEqual({ namespace: "shop", alertType: "B", chain: "deep" });
    expect(planQuestion(chain, { ...NO_SYSTEM_QUERY, type: "C" }, "bank")).toEqual({ namespace: "bank", alertType: "A", chain: "deep" });
    expect(planQuestion({ ...chain, alertTypes: [] }, NO_SYSTEM_QUERY, "")).toEqual({ namespace: "library", alertType: "Any", chain: "deep" });
  });

  it("lists warnings once, with their part", () => {
    const part = (name: string, changes: Partial<PlanPart> = {}): PlanPart => ({ what: "agent", name, note: "", about: null, settings: [], sentences: [], warnings: [], parts: [], ...changes });
    const server = { name: "server", value: "shop/tools (all tools)", origin: null, about: null, warnings: ["Available: Unreachable"] };
    const tree = part("deep", { parts: [part("look", { settings: [server, server], warnings: ["Ready: Broken"] })] });
    expect(warningsOf(tree)).toEqual(["deep > look: Ready: Broken", "deep > look: server shop/tools: Available: Unreachable"]);
  });
});

describe("the address of the view", () => {
  it("holds filters, the open object and the plan", () => {
    const query = { ...NO_SYSTEM_QUERY, search: "no chain", object: "MCPServer/shop/tools", plan: "shop/deep" };
    expect(parse(systemLink(query))).toEqual({ view: "system", query });
    expect(systemLink(NO_SYSTEM_QUERY)).toBe("#/system");
  });
});
