/**
 * Maintains the selected tool servers, tools and native tools of an alert.
 *
 * Decision: a server with all tools selected is sent by its name alone, so the run gets the tools that it has by then;
 * tools are listed only if one is deselected.
 */
import type { Chain, McpServer, Provider } from "../api/types";

/** Selected tools by server; null: all tools of the server. */
export type Chosen = ReadonlyMap<string, ReadonlySet<string> | null>;
export type NativeTool = (typeof NATIVE)[number]["field"];
export type Wishes = Partial<Record<NativeTool, boolean>>;

export const NATIVE = [
  { field: "googleSearch", name: "Google Search" },
  { field: "codeExecution", name: "Code execution" },
  { field: "urlContext", name: "URL context" },
] as const;

/** Returns one server for each name; the server of the namespace precedes that of the library. */
export function offered(servers: readonly McpServer[], home: string): McpServer[] {
  const found = new Map<string, McpServer>();
  for (const server of servers) if (!found.has(server.name) || server.namespace === home) found.set(server.name, server);
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export function withServer(chosen: Chosen, name: string): Chosen {
  const after = new Map(chosen);
  if (!after.delete(name)) after.set(name, null);
  return after;
}

export function withTool(chosen: Chosen, server: McpServer, tool: string): Chosen {
  const after = new Map(chosen);
  const before = after.has(server.name) ? (after.get(server.name) ?? new Set(server.tools)) : new Set<string>();
  const now = new Set(before);
  if (!now.delete(tool)) now.add(tool);
  if (now.size === 0) after.delete(server.name);
  // The list of tools may be truncated: selecting all visible ones does not select all.
  else if (server.tools.every((one) => now.has(one)) && server.tools.length === server.toolCount) after.set(server.name, null);
  else after.set(server.name, now);
  return after;
}

export function has(chosen: Chosen, server: string, tool: string): boolean {
  return chosen.has(server) && (chosen.get(server)?.has(tool) ?? true);
}

/** Returns the fields of the alert; none without a selection. */
export function brought(chosen: Chosen, wishes: Wishes): object {
  const servers = [...chosen].map(([name, tools]) => ({ name, ...(tools ? { tools: [...tools].sort() } : {}) }));
  const native = Object.fromEntries(Object.entries(wishes).filter(([, on]) => on !== undefined));
  return {
    ...(servers.length > 0 ? { mcpServers: servers } : {}),
    ...(Object.keys(native).length > 0 ? { nativeTools: native } : {}),
  };
}

/** Returns whether the chain accepts tools of an alert; true if the chain is unknown. */
export function takesTools(chains: readonly Chain[], ref: { namespace: string; name: string } | undefined): boolean {
  return chains.find((one) => one.namespace === ref?.namespace && one.name === ref.name)?.takesTools ?? true;
}

export function anyNative(providers: readonly Provider[]): boolean {
  return providers.some((one) => one.hasNativeTools);
}
