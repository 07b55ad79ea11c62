import { afterEach, describe, expect, it, vi } from "vitest";
import { delayOf } from "../src/api/live";
import type { Finding, Investigation, Item, TimelineMessage, ToldEvent, Trace } from "../src/api/types";
import { isDoubted, shownConfidence } from "../src/logic/confidence";
import { ago, clock, cost, duration, moment, pretty, shortMoment } from "../src/logic/format";
import { groupsOf } from "../src/logic/groups";
import { merged } from "../src/logic/items";
import { piecesOf } from "../src/logic/marks";
import { fenced, findingAsMarkdown, investigationAsMarkdown, withoutBlock } from "../src/logic/markdown";
import { investigationLink, listLink, parse, questionOf, traceLink, usageLink } from "../src/logic/route";
import { EMPTY, reduce } from "../src/logic/timeline";
import { bars } from "../src/logic/waterfall";

describe("the address", () => {
  it("holds the whole question of a list, and gives it back", () => {
    const query = { state: "running", alertType: "Pod & Co", author: "ann@example.org", search: "out of memory", sort: "cost" };
    expect(parse(listLink(query))).toEqual({ view: "list", query });
  });

  it("leaves out what is asked anyway, and what nobody can ask", () => {
    expect(listLink({ sort: "newest", state: "" })).toBe("#/investigations");
    expect(parse("#/investigations?sort=sideways&evil=1")).toEqual({ view: "list", query: {} });
  });

  it("leads to an event and to a call", () => {
    expect(parse(investigationLink("shop", "one.two", "e1"))).toEqual({ view: "investigation", namespace: "shop", name: "one.two", event: "e1", quote: null });
    const quoted = parse(investigationLink("shop", "one", "e1", "a & b = 50 %"));
    expect(quoted).toMatchObject({ event: "e1", quote: "a & b = 50 %" });
    expect(parse(traceLink("shop", "one", "c1"))).toEqual({ view: "trace", namespace: "shop", name: "one", call: "c1" });
  });

  it("keeps where to go after signing in", () => {
    expect(parse("#/sign-in/CODE/investigations/shop/one")).toEqual({ view: "sign-in", code: "CODE", next: "/investigations/shop/one" });
  });

  it("is nowhere when it makes no sense, and never breaks", () => {
    expect(parse("#/%zz/x").view).toBe("nowhere");
    expect(parse("#/usage?days=-4&by=day")).toEqual({ view: "usage", by: "chain", days: 30, show: null });
    expect(parse(usageLink("author", 90, "tokens"))).toEqual({ view: "usage", by: "author", days: 90, show: "tokens" });
  });
});

function item(uid: string, changes: Partial<Item> = {}): Item {
  const spent = { inputTokens: 1, outputTokens: 2, thinkingTokens: 0, cachedTokens: 0, totalTokens: 3, usageComplete: true, costUSD: 0.5, costComplete: true };
  return {
    namespace: "shop", name: uid, uid, alertType: "PodCrash", chain: "crash", chainNamespace: "lib", author: null, state: "running",
    desiredState: "Running", attempt: 1, revision: 1, acceptedAt: `2026-11-22T12:00:0${uid}Z`, startedAt: "2026-11-22T12:00:00Z",
    finishedAt: null, progress: { stagesFinished: 0, stagesPlanned: 2, currentStage: "look" }, spent, modelCalls: 1, toolCalls: 1,
    finding: null, executiveSummary: null, failure: null, budgetExceeded: null, evidenceDegraded: false, objectGone: false, flaws: [], severity: null, alertKey: null, excerpt: null, outcome: null, ...changes,
  };
}

describe("a list that changes", () => {
  const page = [item("2"), item("1")];
  const names = (found: { shown: Item[] }) => found.shown.map((one) => one.uid);

  it("shows what is new on top, and what changed in its place", () => {
    const changes = new Map([["3", item("3")], ["1", item("1", { revision: 2, state: "completed" })]]);
    const found = merged(page, changes, { query: {}, first: true, limit: 50 });
    expect(names(found)).toEqual(["3", "2", "1"]);
    expect(found.shown[2]?.state).toBe("completed");
  });

  it("counts what is new where it cannot know whether it belongs there", () => {
    const found = merged(page, new Map([["3", item("3")]]), { query: { state: "running" }, first: true, limit: 50 });
    expect([names(found), found.waiting]).toEqual([["2", "1"], 1]);
  });

  it("counts nothing that was accepted outside of the time that was asked for", () => {
    const fresh = new Map(["1", "3", "5"].map((uid) => [uid, item(uid)]));
    const query = { since: "2026-11-22T12:00:03Z", until: "2026-11-22T12:00:05Z" };
    expect(merged([], fresh, { query, first: true, limit: 50 }).waiting).toBe(1);
  });

  it("never goes back to an older revision", () => {
    const found = merged([item("1", { revision: 9, state: "completed" })], new Map([["1", item("1")]]), { query: {}, first: true, limit: 50 });
    expect(found.shown[0]?.state).toBe("completed");
  });

  it("takes nothing older onto a full page", () => {
    expect(names(merged(page, new Map([["0", item("0")]]), { query: {}, first: true, limit: 2 }))).toEqual(["2", "1"]);
  });
});

describe("a list of what has finished", () => {
  const states = ["completed", "failed"] as const;

  it("takes up what ends, and leaves out what runs", () => {
    const page = [item("1", { state: "completed" }), item("2")];
    const changes = new Map([["2", item("2", { revision: 2, state: "failed" })], ["3", item("3")], ["4", item("4", { state: "completed" })]]);
    const found = merged(page, changes, { query: {}, first: true, limit: 50, states });
    expect(found.shown.map((one) => one.uid)).toEqual(["4", "2", "1"]);
  });

  it("counts what it cannot place under a filter", () => {
    const changes = new Map([["3", item("3")], ["4", item("4", { state: "completed" })]]);
    expect(merged([], changes, { query: { flaw: "any" }, first: true, limit: 50, states }).waiting).toBe(1);
  });
});

describe("identical alerts", () => {
  it("follow the newest of them", () => {
    const found = groupsOf([item("5", { alertKey: "a" }), item("4", { alertKey: "b" }), item("3", { alertKey: "a" }), item("2"), item("1")]);
    expect(found.map((group) => [group.item.uid, group.alike.map((one) => one.uid)])).toEqual([["5", ["3"]], ["4", []], ["2", []], ["1", []]]);
  });
});

describe("hits of a search", () => {
  const hits = (text: string, search: string, whole = false) => piecesOf(text, search, whole).filter((piece) => piece.hit).map((piece) => piece.text);

  it("are the words in any case, or the text as it is", () => {
    expect(hits("Out of memory, memory.", "MEMORY out")).toEqual(["Out", "memory", "memory"]);
    expect(hits("Out of memory", "of mem", true)).toEqual(["of mem"]);
  });

  it("need no escaping, and leave the text whole", () => {
    expect(hits("a (b.c) d", "(b.c)", true)).toEqual(["(b.c)"]);
    expect(hits("a.b", "…")).toEqual([]);
    expect(piecesOf("one two", "two", false).map((piece) => piece.text).join("")).toBe("one two");
  });
});

describe("a question about flaws", () => {
  it("asks for each of them when any will do", () => {
    expect(questionOf({ flaw: "any", sort: "cost" })["flaw"]).toContain("BudgetReached");
    expect(questionOf({ flaw: "BudgetReached" })).toEqual({ flaw: "BudgetReached" });
  });
});

describe("Markdown", () => {
  it("fences what holds fences itself", () => {
    expect(fenced("a\n```\nb")).toBe("````\na\n```\nb\n````");
  });

  it("leaves the block for programs out, half told ones too", () => {
    expect(withoutBlock("It crashes.\n\n```finding\n{\"claims\": []}\n```")).toBe("It crashes.");
    expect(withoutBlock("It crashes.\nFinal Answer: ```finding\n{\"cl")).toBe("It crashes.");
    expect(withoutBlock("```json\n{}\n```")).toBe("```json\n{}\n```");
  });

  it("tells finding, alert and where each claim is from", () => {
    const finding = {
      summary: "The key was renamed.", confidence: "High", shownConfidence: "High", structured: true, notes: [], changesForGit: [],
      claims: [{ text: "It was.", supported: false, ungrounded: [], contradicted: false, citations: [{ callId: "c", quote: "renamed", supported: false, reason: "no such call", interaction: null, stage: "look", agent: "first", tool: "logs", integrity: null, replaced: false }] }],
    } as Finding;
    const whole = { ...item("1"), alert: "pod crashes", runbook: null, stages: [], conditions: [], evidenceMissing: [] } as unknown as Investigation;
    const text = investigationAsMarkdown(whole, EMPTY, finding);
    for (const part of ["# PodCrash: shop/1", "(High confidence): The key was renamed.", "⚠ not supported: It was.", "look/first/logs: “renamed” (no such call)", "pod crashes"]) {
      expect(text).toContain(part);
    }
  });

  it("tells each time with its zone, and the other runs of the alert", () => {
    const whole = { ...item("1"), alert: "pod crashes", retryOf: { name: "first", uid: "1" }, retriedBy: { name: "third", uid: "3" }, finishedAt: "2026-11-22T12:01:00Z" } as unknown as Investigation;
    const event = { seq: 1, revision: 1, status: "completed", metadata: {}, createdAt: "2026-11-22T12:00:05Z", stage: "look", agent: "first" } as unknown as ToldEvent;
    const told = (one: Partial<ToldEvent>): TimelineMessage => ({ type: "timelineEvent.closed", channel: "c", investigation: { namespace: "shop", name: "1", uid: "1" }, question: null, id: "1", event: { ...event, ...one } });
    const text = investigationAsMarkdown(whole, reduce(EMPTY, [told({ id: "a", type: "llm_response", content: "I look." })]), null);
    expect(text).toMatch(/\*\*Response\*\* · look\/first · \d+ Nov 2026, \d\d:\d\d:05 \S+\n/);
    expect(text).toMatch(/finished \d+ Nov 2026, \d\d:\d\d:00 \S+ ·/);
    expect(text).toContain("retry of first · retried by third");
  });
});

describe("figures", () => {
  it("never make a zero of what is not known", () => {
    expect(cost({ costUSD: null })).toBe("–");
    expect(cost({ costUSD: 0.0012, costComplete: false })).toBe("$0.0012+");
  });

  it("are short", () => {
    expect([duration(12), duration(1500), duration(75_000), duration(7_260_000)]).toEqual(["12 ms", "1.5 s", "1 m 15 s", "2 h 1 m"]);
    expect(ago("2026-11-22T12:00:00Z", Date.parse("2026-11-22T12:00:42Z"))).toBe("42 s");
  });

  it("lay out JSON and leave alone what is none", () => {
    expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(pretty("{ not json")).toBe("{ not json");
  });
});

describe("the waterfall", () => {
  const call = (id: string, from: number, milliseconds: number | null) => ({
    id, state: "completed", startedAt: new Date(from).toISOString(), finishedAt: null, durationMs: milliseconds,
  });
  const trace = {
    stages: [{ id: "s", name: "look", state: "completed", agents: [{
      id: "a", name: "first", strategy: "react", model: "m",
      llm: [{ ...call("l", 1000, 1000), number: 0, kind: "iteration", failure: null }],
      mcp: [{ ...call("m", 2000, 2000), tool: "logs", refused: null }],
    }] }],
  } as unknown as Trace;

  it("puts all calls on one scale", () => {
    const found = bars(trace)[0]?.agents[0]?.bars ?? [];
    expect(found.map((bar) => [bar.id, Math.round(bar.left), Math.round(bar.width)])).toEqual([["l", 0, 33], ["m", 33, 67]]);
  });

  it("lets a call that is not over reach to now", () => {
    const open = structuredClone(trace);
    Object.assign(open.stages[0]?.agents[0]?.mcp[0] ?? {}, { durationMs: null });
    expect(bars(open, 5000)[0]?.agents[0]?.bars[1]?.width).toBeCloseTo(75);
  });
});

describe("coming again", () => {
  it("waits longer each time, and never for long", () => {
    expect([0, 1, 2, 20].map((attempt) => delayOf(attempt, () => 1))).toEqual([400, 800, 1600, 10_000]);
    expect(delayOf(3, () => 0)).toBe(1600);
  });
});

describe("a finding with a change for Git", () => {
  const change = { tool: "k8s.scale", objects: [{ object: "Deployment shop/checkout", managedBy: "Helm (release shop)" }], patch: "-  replicas: 1\n+  replicas: 3" };
  const plain: Finding = { summary: "Too few.", confidence: "Low", shownConfidence: "Low", structured: true, claims: [], notes: [], changesForGit: [] };

  it("has it as a diff, with the object and what manages it", () => {
    const text = findingAsMarkdown({ ...plain, changesForGit: [change] });
    expect(text).toContain("**Change to make in Git**: Deployment shop/checkout is managed by Helm (release shop)");
    expect(text).toContain("```diff\n-  replicas: 1\n+  replicas: 3\n```");
  });

  it("is as before without one", () => {
    expect(findingAsMarkdown(plain)).toBe("**Finding** (Low confidence): Too few.");
  });
});

describe("a confidence", () => {
  const found = (shownConfidence: string | null) => ({ summary: "It is so.", confidence: "High", shownConfidence, structured: true, claims: [], notes: [], changesForGit: [] }) as Finding;

  it("is shown with its count where the server adds one, on the page and in Markdown", () => {
    expect(isDoubted(found("High (12 of 20 right)"))).toBe(true);
    expect(shownConfidence(found("High (12 of 20 right)"))).toBe("High (12 of 20 right)");
    expect(findingAsMarkdown(found("High (12 of 20 right)"))).toBe("**Finding** (High (12 of 20 right)): It is so.");
  });

  it("has its usual name else, also of an older server", () => {
    for (const one of ["High", null, undefined as unknown as null]) {
      expect(isDoubted(found(one))).toBe(false);
      expect(shownConfidence(found(one))).toBe("High confidence");
    }
  });
});

describe("times", () => {
  const at = "2026-11-28T09:05:03Z";
  afterEach(() => vi.unstubAllGlobals());

  it("are written in the selected zone, also after it is changed", () => {
    vi.stubEnv("TZ", "America/New_York");
    let zone: string | null = "utc";
    vi.stubGlobal("localStorage", { getItem: () => zone });
    expect([clock(at), moment(at)]).toEqual(["09:05:03", "28 Nov 2026, 09:05:03 UTC"]);
    expect([shortMoment(at, Date.parse(at) + 86_399_999), shortMoment(at, Date.parse(at) + 86_400_000)]).toEqual(["09:05", "28 Nov"]);
    zone = null;
    expect(clock(at)).toBe("04:05:03");
    zone = "utc";
    expect(clock(at)).toBe("09:05:03");
    vi.unstubAllEnvs();
  });

  it("that cannot be read are told as such", () => {
    expect(clock("soon")).toBe("Invalid Date");
  });
});
