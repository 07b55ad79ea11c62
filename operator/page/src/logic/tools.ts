/**
 * What an alert brings to be investigated with: tool servers, single tools of them, and tools of the model's provider.
 *
 * Decision: a server whose tools are all chosen is sent by its name alone, so it has what it will have by then; tools
 * are named only where somebody left one out.
 */
import type { Chain, McpServer, Provider } from "../api/types";

/** Servers by name; null: with all of their tools. */
export type Chosen = ReadonlyMap<string, ReadonlySet<string> | null>;
export type NativeTool = (typeof NATIVE)[number]["field"];
export type Wishes = Partial<Record<NativeTool, boolean>>;

export const NATIVE = [
  { field: "googleSearch", name: "Search with Google" },
  { field: "codeExecution", name: "Run code at the provider" },
  { field: "urlContext", name: "Read pages by URL" },
] as const;

/** One server a name: that of the namespace itself goes before that of the library. */
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
  // Where the list is cut there are tools that nobody can see here: all that are seen are not all there are.
  else if (server.tools.every((one) => now.has(one)) && server.tools.length === server.toolCount) after.set(server.name, null);
  else after.set(server.name, now);
  return after;
}

export function has(chosen: Chosen, server: string, tool: string): boolean {
  return chosen.has(server) && (chosen.get(server)?.has(tool) ?? true);
}

/** The fields of an alert; none where nothing was chosen. */
export function brought(chosen: Chosen, wishes: Wishes): object {
  const servers = [...chosen].map(([name, tools]) => ({ name, ...(tools ? { tools: [...tools].sort() } : {}) }));
  const native = Object.fromEntries(Object.entries(wishes).filter(([, on]) => on !== undefined));
  return {
    ...(servers.length > 0 ? { mcpServers: servers } : {}),
    ...(Object.keys(native).length > 0 ? { nativeTools: native } : {}),
  };
}

/** Whether what an alert brings is taken by the chain that will be run; where that is not known, it may be tried. */
export function takesTools(chains: readonly Chain[], ref: { namespace: string; name: string } | undefined): boolean {
  return chains.find((one) => one.namespace === ref?.namespace && one.name === ref.name)?.takesTools ?? true;
}

export function anyNative(providers: readonly Provider[]): boolean {
  return providers.some((one) => one.hasNativeTools);
}
