import { describe, expect, it } from "vitest";
import type { DeltaMessage, ServerMessage, TimelineMessage, ToldEvent } from "../src/api/types";
import { EMPTY, reduce, rowsOf, type Timeline } from "../src/logic/timeline";
import { stageHolding, summaryOf, withoutClosed } from "../src/logic/folds";

const RUN = { namespace: "shop", name: "one", uid: "run" };
const CHANNEL = "investigation:shop/one";
const QUESTION = { name: "why", uid: "question", place: 1 };

function event(id: string, changes: Partial<ToldEvent> = {}): ToldEvent {
  return {
    id,
    seq: 1,
    revision: 1,
    type: "llm_response",
    status: "streaming",
    content: "",
    metadata: {},
    stage: "look",
    agent: "first",
    parent: null,
    stageId: "stage",
    execution: "agent-1",
    modelCall: null,
    toolCall: null,
    createdAt: "2026-11-22T12:00:00Z",
    updatedAt: "2026-11-22T12:00:00Z",
    truncated: false,
    ...changes,
  };
}

function told(one: ToldEvent, more: Partial<TimelineMessage> = {}): TimelineMessage {
  const type = one.status === "streaming" ? "timelineEvent.created" : "timelineEvent.closed";
  return { type, channel: CHANNEL, investigation: RUN, question: null, id: null, event: one, ...more };
}

function delta(id: string, offset: number, text: string): DeltaMessage {
  return { type: "delta", channel: CHANNEL, investigation: RUN, question: null, event: id, offset, text, truncated: false };
}

const after = (...messages: ServerMessage[]): Timeline => reduce(EMPTY, messages);
const textOf = (timeline: Timeline, id: string) => timeline.events.get(id)?.content;

describe("words that stream", () => {
  it("are added at their place", () => {
    expect(textOf(after(told(event("a")), delta("a", 0, "The pod "), delta("a", 8, "crashes")), "a")).toBe("The pod crashes");
  });

  it("are counted in code points", () => {
    expect(textOf(after(told(event("a")), delta("a", 0, "😀é"), delta("a", 2, "!")), "a")).toBe("😀é!");
  });

  it("are not doubled when they are told again or overlap", () => {
    expect(textOf(after(told(event("a")), delta("a", 0, "abc"), delta("a", 0, "abc"), delta("a", 2, "cd")), "a")).toBe("abcd");
  });

  it("wait where the event is not known yet", () => {
    expect(textOf(after(delta("a", 0, "ab"), delta("a", 2, "c"), told(event("a"))), "a")).toBe("abc");
  });

  it("leave a gap to the end of the event, which tells all", () => {
    const gap = after(told(event("a")), delta("a", 0, "ab"), delta("a", 10, "z"));
    expect(textOf(gap, "a")).toBe("ab");
    const closed = reduce(gap, [told(event("a", { status: "completed", content: "ab and so on z", revision: 2 }))]);
    expect(textOf(closed, "a")).toBe("ab and so on z");
  });

  it("change nothing of an event that is closed", () => {
    const closed = after(told(event("a", { status: "completed", content: "masked ***" })), delta("a", 10, "secret"));
    expect(textOf(closed, "a")).toBe("masked ***");
  });

  it("stay when the same event is told with fewer of them", () => {
    expect(textOf(after(told(event("a")), delta("a", 0, "abc"), told(event("a", { revision: 2 }))), "a")).toBe("abc");
  });
});

describe("messages", () => {
  it("that are older than what is known are left out", () => {
    const closed = event("a", { status: "completed", content: "all", revision: 5 });
    expect(textOf(after(told(closed), told(event("a", { revision: 3 }))), "a")).toBe("all");
  });

  it("told twice, as after a reconnect, change nothing", () => {
    const messages = [told(event("a", { seq: 1 })), told(event("b", { seq: 2, status: "completed", content: "b" }))];
    const once = after(...messages);
    expect(reduce(once, messages)).toEqual(once);
  });

  it("put events in their order, and those of questions behind", () => {
    const question = told(event("q", { seq: 1 }), { question: QUESTION });
    const found = after(question, told(event("c", { seq: 3 })), told(event("a", { seq: 1 })), told(event("b", { seq: 2 })));
    expect(found.order).toEqual(["a", "b", "c", "q"]);
    expect([...found.answers.keys()]).toEqual(["question"]);
  });

  it("do not change what was known before", () => {
    const before = after(told(event("a")));
    reduce(before, [delta("a", 0, "abc")]);
    expect(textOf(before, "a")).toBe("");
  });
});

describe("rows", () => {
  const two = after(
    told(event("a", { seq: 1, execution: "agent-1", agent: "first" })),
    told(event("b", { seq: 2, execution: "agent-2", agent: "second" })),
    told(event("s", { seq: 3, stageId: null, execution: null, stage: null })),
    told(event("q", { seq: 1 }), { question: QUESTION }),
  );
  const keys = (chosen: ReadonlyMap<string, string>) => rowsOf(two, chosen).map((row) => row.key);

  it("begin each stage with its agents, and leave questions out", () => {
    expect(keys(new Map())).toEqual(["stage", "a", "b", "s"]);
    const head = rowsOf(two, new Map())[0];
    expect(head?.kind === "stage" && head.agents.map((agent) => agent.name)).toEqual(["first", "second"]);
  });

  it("of a folded stage are hidden and counted, and an event of it is found", () => {
    const failed = event("f", { seq: 4, type: "llm_tool_call", metadata: { is_error: true }, execution: "agent-1" });
    const rows = rowsOf(reduce(two, [told(failed)]), new Map(), 4);
    expect(withoutClosed(rows, new Set(["stage"])).map((row) => row.key)).toEqual(["stage", "s"]);
    expect(withoutClosed(rows, new Set()).length).toBe(rows.length);
    expect(summaryOf(rows, "stage")).toEqual({ events: 3, calls: 1, failed: 1 });
    expect([stageHolding(rows, "b"), stageHolding(rows, "s"), stageHolding(rows, "none")]).toEqual(["stage", null, null]);
  });

  it("show one agent where one was chosen", () => {
    expect(keys(new Map([["stage", "agent-2"]]))).toEqual(["stage", "b", "s"]);
  });
});
