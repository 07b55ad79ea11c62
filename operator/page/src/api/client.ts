/** Sends requests to the API of the server that served the web UI; the cookie authenticates them. */
import { takeEarly } from "./early";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

const PREFIX = "/api/v1";
let whenSignedOut: () => void = () => {};

/** Sets the callback for the end of the session (401). */
export function onSignedOut(act: () => void): void {
  whenSignedOut = act;
}

export function queryString(query: Query): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) found.append(name, String(one));
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}

/** Returns the URL of a resource of the API, which also identifies its request. */
export function urlOf(path: string, query: Query = {}): string {
  return PREFIX + path + queryString(query);
}

async function ask<T>(method: string, path: string, init: RequestInit = {}): Promise<T> {
  let answer: Response;
  const url = PREFIX + path;
  try {
    answer = await (takeEarly(method, url) ?? fetch(url, { method, credentials: "same-origin", ...init }));
    init.signal?.throwIfAborted();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused(0, "Unreachable", "TARSy does not respond. Is it running?");
  }
  if (answer.ok) return (await answer.json()) as T;
  let reason = answer.statusText;
  let message = `the server responded with HTTP ${answer.status}`;
  try {
    const said = (await answer.json()) as { error?: { reason?: string; message?: string } };
    reason = said.error?.reason ?? reason;
    message = said.error?.message ?? message;
  } catch {
    // the response is not from TARSy, but from a proxy in between
  }
  if (answer.status === 401 && path !== "/session") whenSignedOut();
  throw new Refused(answer.status, reason, message);
}

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return ask<T>("GET", path + queryString(query), signal ? { signal } : {});
}

export function post<T>(path: string, body?: unknown): Promise<T> {
  if (body === undefined) return ask<T>("POST", path);
  return ask<T>("POST", path, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
}

export function signIn(token: string): Promise<unknown> {
  return ask("POST", "/session", { headers: { Authorization: `Bearer ${token}` } });
}

export function signInByCode(code: string): Promise<unknown> {
  return post("/session/codes", { code });
}

export function signOut(): Promise<unknown> {
  return ask("DELETE", "/session");
}

/** Messages of the first page of a timeline, which is shown at once. */
const FIRST_EVENTS = 200;

/** Returns path and query of the first page of a timeline. */
export function firstEvents(namespace: string, name: string): [path: string, query: Query] {
  return [`${pathOf(namespace, name)}/events`, { after: "0", limit: FIRST_EVENTS }];
}

export function pathOf(namespace: string, name: string): string {
  return `/namespaces/${namespace}/investigations/${name}`;
}
