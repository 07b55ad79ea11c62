import { describe, expect, it } from "vitest";
import type { Chain, McpServer, Provider } from "../src/api/types";
import { typeHint } from "../src/logic/alertType";
import { FIRST, fromField, LAST, toField } from "../src/logic/moments";
import { anyNative, brought, has, offered, takesTools, withServer, withTool, type Chosen } from "../src/logic/tools";

function server(name: string, tools: string[], changes: Partial<McpServer> = {}): McpServer {
  return {
    namespace: "shop", name, uid: `${name}-uid`, ready: true, conditions: [], description: null, transport: "http", toolPolicy: "ReadOnly",
    available: true, toolCount: tools.length, tools, lastError: null, ...changes,
  };
}

const none: Chosen = new Map();
const logs = server("logs", ["search", "tail", "count"]);

describe("what an alert brings", () => {
  it("is nothing where nothing was chosen", () => {
    expect(brought(none, {})).toEqual({});
    expect(brought(none, { googleSearch: undefined })).toEqual({});
  });

  it("is a server with whatever tools it has, where none was left out", () => {
    expect(brought(withServer(none, "logs"), {})).toEqual({ mcpServers: [{ name: "logs" }] });
    const one = withTool(withTool(withTool(none, logs, "tail"), logs, "search"), logs, "count");
    expect(brought(one, {})).toEqual({ mcpServers: [{ name: "logs" }] });
  });

  it("names the tools where one was left out", () => {
    const chosen = withTool(withServer(none, "logs"), logs, "tail");
    expect(brought(chosen, {})).toEqual({ mcpServers: [{ name: "logs", tools: ["count", "search"] }] });
    expect([has(chosen, "logs", "tail"), has(chosen, "logs", "search"), has(none, "logs", "search")]).toEqual([false, true, false]);
  });

  it("is a server no more when its last tool is left out, or the server itself", () => {
    expect(brought(withTool(withTool(none, logs, "tail"), logs, "tail"), {})).toEqual({});
    expect(brought(withServer(withTool(none, logs, "tail"), "logs"), {})).toEqual({});
  });

  it("never claims all tools of a server that shows only its first ones", () => {
    const large = server("large", ["a", "b"], { toolCount: 300 });
    const chosen = withTool(withTool(none, large, "a"), large, "b");
    expect(brought(chosen, {})).toEqual({ mcpServers: [{ name: "large", tools: ["a", "b"] }] });
  });

  it("turns the provider's tools on and off, and leaves the others as they are configured", () => {
    expect(brought(none, { googleSearch: true, urlContext: false, codeExecution: undefined })).toEqual({ nativeTools: { googleSearch: true, urlContext: false } });
  });
});

describe("what may be brought", () => {
  it("is one server a name, the namespace's own before the library's", () => {
    const library = server("logs", [], { namespace: "lib", uid: "other" });
    for (const both of [[library, logs], [logs, library]]) expect(offered(both, "shop")).toEqual([logs]);
    expect(offered([server("b", []), server("a", [])], "shop").map((one) => one.name)).toEqual(["a", "b"]);
  });

  it("is nothing where the chain takes nothing, and may be tried where nobody knows", () => {
    const chain = { namespace: "shop", name: "strict", takesTools: false } as Chain;
    expect(takesTools([chain], { namespace: "shop", name: "strict" })).toBe(false);
    expect(takesTools([chain], { namespace: "lib", name: "strict" })).toBe(true);
    expect(takesTools([], undefined)).toBe(true);
  });

  it("has tools of the provider where there is one with such tools", () => {
    const provider = (hasNativeTools: boolean) => ({ hasNativeTools }) as Provider;
    expect([anyNative([]), anyNative([provider(false)]), anyNative([provider(false), provider(true)])]).toEqual([false, false, true]);
  });
});

describe("a moment that is picked", () => {
  it("comes back out of the address as it was picked, in the reader's own zone", () => {
    for (const picked of ["2026-11-22T09:05", "2026-07-01T23:59", FIRST, LAST]) expect(toField(fromField(picked))).toBe(picked);
  });

  it("is what the server takes", () => {
    expect(fromField("2026-11-22T09:05")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    expect(Date.parse(fromField("2026-11-22T09:05"))).toBe(new Date(2026, 10, 22, 9, 5).getTime());
  });

  it("is none where there is none, or none that makes sense", () => {
    expect([toField(undefined), toField("yesterday"), fromField(""), fromField("soon")]).toEqual(["", "", "", ""]);
  });
});

describe("the hint of an alert type", () => {
  const types = { items: [], continue: null, defaultAlertType: null, defaultChain: null };
  const usual = { ...types, defaultAlertType: "Report", defaultChain: { namespace: "shop", name: "triage", ready: true } };
  it("names the default type, and the chain that takes what no other handles", () => {
    expect(typeHint(types, "", false)).toBe("Selects the chain.");
    expect(typeHint(usual, "Report", true)).toBe("Selects the chain. Report of this namespace if empty.");
    expect(typeHint(usual, "Odd", false)).toBe("No chain handles it; this one takes it after five minutes: triage");
    expect(typeHint(types, "Odd", false)).toBe("No chain handles it yet; the alert waits for one.");
    expect(typeHint({ ...usual, continue: "more" }, "Odd", false)).toBe("Selects the chain. Report of this namespace if empty.");
  });
});
