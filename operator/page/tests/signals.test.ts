import { describe, expect, it } from "vitest";
import { item } from "../fixtures/build";
import { found, moved, type Command } from "../src/logic/commands";
import { follows, MOST, newsOf, savedFollows, saveFollows, turned, type Followed } from "../src/logic/follows";
import { isOther, scriptsOf } from "../src/logic/version";

describe("the palette", () => {
  const all: Command[] = [
    { id: "1", group: "View", name: "Usage", act: "#/usage" },
    { id: "2", group: "Investigation", name: "TargetDown", hint: "shop/target-usage-1", act: "#/x" },
    { id: "3", group: "Action", name: "Use UTC", act: "#/y" },
  ];
  const ids = (text: string) => found(all, text).map((one) => one.id);

  it("finds what contains all words, in any order, and first what begins with them", () => {
    expect(ids("")).toEqual(["1", "2", "3"]);
    expect(ids("usage")).toEqual(["1", "2"]);
    expect(ids("USAGE shop")).toEqual(["2"]);
    expect(found([all[1] as Command, all[0] as Command], "usage").map((one) => one.id)).toEqual(["1", "2"]);
    expect(ids("none such")).toEqual([]);
  });

  it("moves in a ring", () => {
    expect([moved(0, 1, 3), moved(2, 1, 3), moved(0, -1, 3), moved(0, 1, 0)]).toEqual([1, 0, 2, 0]);
  });
});

describe("a new version", () => {
  const page = (name: string) => `<script type="module" src="/page/assets/${name}"></script>`;

  it("is another script in the served document", () => {
    const open = scriptsOf("https://tarsy.example.org/page/assets/index-a1b2.js");
    expect(open).toEqual(["index-a1b2.js"]);
    expect(isOther(open, page("index-a1b2.js"))).toBe(false);
    expect(isOther(open, page("index-c3d4.js"))).toBe(true);
  });

  it("is not told by a page of something else, nor while the scripts are served from source", () => {
    expect(isOther(["index-a1b2.js"], "<h1>Bad gateway</h1>")).toBe(false);
    expect(isOther([], page("index-c3d4.js"))).toBe(false);
  });
});

describe("followed investigations", () => {
  const one: Followed = { namespace: "shop", name: "one", state: "running" };
  const store = (saved: string | null = null) => {
    const kept = { saved, getItem: () => kept.saved, setItem: (_: string, text: string) => void (kept.saved = text) };
    return kept;
  };

  it("are kept, the newest ones, whatever another version has written", () => {
    const kept = store();
    saveFollows(Array.from({ length: MOST + 1 }, (_, n) => ({ ...one, name: `run-${n}` })), kept);
    expect(savedFollows(kept)).toHaveLength(MOST);
    expect(savedFollows(kept)[0]?.name).toBe("run-1");
    expect([savedFollows(store("{")), savedFollows(store('{"a": 1}')), savedFollows(store('[1, {"name": 2}]'))]).toEqual([[], [], []]);
  });

  it("are on the list once", () => {
    const twice = turned([one], { ...one, state: "parked" }, true);
    expect(twice).toEqual([{ ...one, state: "parked" }]);
    expect(follows(twice, one)).toBe(true);
    expect(turned(twice, one, false)).toEqual([]);
  });

  it("are told about when they end or wait for people, once", () => {
    const now = (changes: Parameters<typeof item>[0]) => newsOf(one, item(changes));
    expect(now({ state: "running" })).toBeNull();
    expect(newsOf({ ...one, state: "pending" }, item({ state: "running" }))).toBeNull();
    expect(now({ state: "parked" })).toMatchObject({ title: "Parked: KubePodCrashLooping", over: false });
    expect(newsOf({ ...one, state: "parked" }, item({ state: "parked" }))).toBeNull();
    const finding = { summary: "x".repeat(300), confidence: "High", shownConfidence: null, claims: 0, supportedClaims: 0 } as const;
    expect(now({ state: "completed", finding })).toEqual({ title: "Succeeded: KubePodCrashLooping", text: "x".repeat(200), over: true });
    expect(now({ state: "failed", failure: { reason: "NoFinding", message: "There is none." } })?.text).toBe("There is none.");
    expect(now({ state: "cancelled" })).toMatchObject({ text: "", over: true });
  });
});
