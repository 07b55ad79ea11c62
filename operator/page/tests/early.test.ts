import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { get, post } from "../src/api/client";
import { requestFirst } from "../src/api/first";
import { listQuestion, pageQuestion, savedNamespace } from "../src/logic/questions";

const WHERE = { everywhere: false, items: ["shop", "stock"], more: false };
const BODIES: Record<string, object> = { "/api/v1/session": { username: "you" }, "/api/v1/namespaces": WHERE };

let asked: string[];
let status: Record<string, number>;
let saved: string | null;

beforeEach(() => {
  asked = [];
  status = {};
  saved = null;
  vi.useFakeTimers({ toFake: ["performance"] });
  vi.stubGlobal("localStorage", { getItem: () => saved });
  vi.stubGlobal("fetch", (url: string, init: RequestInit = {}) => {
    asked.push(`${init.method} ${url}`);
    return Promise.resolve(new Response(JSON.stringify(BODIES[url] ?? { of: url }), { status: status[url] ?? 200 }));
  });
});

afterEach(async () => {
  await post("/end").catch(() => {}); // discards what was not taken
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const URL_ = "/api/v1/namespaces/shop/investigations/one";

describe("the requests of the first view", () => {
  it("are those that the list sends, which takes their responses once", async () => {
    await requestFirst("#/investigations?chain=default");
    const page = "/api/v1/investigations?chain=default&namespace=shop&namespace=stock&limit=50&state=completed&state=failed&state=cancelled&state=timed_out";
    const active = "/api/v1/investigations?chain=default&namespace=shop&namespace=stock&limit=50&sort=newest&state=pending&state=running&state=parked";
    expect(asked).toEqual(["/api/v1/session", "/api/v1/namespaces", page, active].map((url) => `GET ${url}`));
    const query = pageQuestion({ chain: "default" }, ["shop", "stock"]);
    expect(await get("/investigations", query)).toEqual({ of: page });
    expect(asked).toHaveLength(4);
    await get("/investigations", query);
    expect(asked).toHaveLength(5);
  });

  it("ask for alerts without a run only where the list is not filtered, and for one list where phase or text is", async () => {
    await requestFirst("");
    expect(asked.filter((one) => one.includes("/unstarted?"))).toEqual(["GET /api/v1/unstarted?namespace=shop&namespace=stock&limit=20"]);
    asked.length = 0;
    await requestFirst("#/investigations?search=zebra");
    expect(asked.filter((one) => one.includes("/investigations?"))).toEqual(["GET /api/v1/investigations?search=zebra&namespace=shop&namespace=stock&limit=50"]);
  });

  it("name the selected namespace while it is permitted", async () => {
    saved = "stock";
    await requestFirst("");
    expect(asked.at(-1)).toBe("GET /api/v1/unstarted?namespace=stock&limit=20");
    saved = "gone";
    expect(savedNamespace(WHERE)).toBe("");
    expect(listQuestion({}, ["shop"])).toEqual({ namespace: ["shop"], limit: 50 });
  });

  it("are the first events and the investigation where one is open", async () => {
    await requestFirst("#/investigations/shop/one?event=e");
    expect(asked.slice(2)).toEqual([`GET ${URL_}`, `GET ${URL_}/events?after=0&limit=200`]);
  });

  it("are none before a sign-in link is redeemed, and stop at a session that is refused", async () => {
    await requestFirst("#/sign-in/0123456789abcdef/investigations/shop/one");
    expect(asked).toEqual([]);
    status["/api/v1/session"] = 401;
    await requestFirst("#/investigations/shop/one");
    expect(asked).toEqual(["GET /api/v1/session", "GET /api/v1/namespaces"]);
  });

  it("give nothing that was requested before a sign-in", async () => {
    status["/api/v1/session"] = 401;
    await requestFirst("");
    status = {};
    await post("/session/codes", { code: "0123456789abcdef" });
    expect(await get("/session")).toEqual({ username: "you" });
    expect(asked.filter((one) => one.endsWith("/session"))).toHaveLength(2);
  });

  it("wait ten seconds to be taken", async () => {
    await requestFirst("#/investigations/shop/one");
    vi.advanceTimersByTime(9_999);
    await get("/namespaces/shop/investigations/one");
    expect(asked).toHaveLength(4);
    await requestFirst("#/investigations/shop/one");
    vi.advanceTimersByTime(10_000);
    await get("/namespaces/shop/investigations/one");
    expect(asked).toHaveLength(9);
  });

  it("tell a server that does not respond, and a view that was left, as later ones", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    await requestFirst("#/investigations/shop/one");
    await expect(get("/session")).rejects.toMatchObject({ status: 0, reason: "Unreachable" });
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}")));
    await requestFirst("#/investigations/shop/one");
    const left = new AbortController();
    left.abort();
    await expect(get("/namespaces/shop/investigations/one", {}, left.signal)).rejects.toMatchObject({ name: "AbortError" });
  });
});
