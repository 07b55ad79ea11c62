/** Builds the requests that the first views send, so that they can be sent before these are drawn. */
import type { Namespaces } from "../api/types";
import { FILTERS, questionOf, type ListQuery } from "./route";
import { ACTIVE, FINISHED } from "./timeline";

/** Investigations of a page of the list. */
export const LIMIT = 50;
/** Requests without a run that are shown above the list. */
export const UNSTARTED_LIMIT = 20;
const MOST_NAMESPACES = 20;
const SAVED = "tarsy-namespace";

type Question = Record<string, string | number | boolean | readonly string[] | null | undefined>;

/** Returns the namespace that was selected last, if it is permitted; empty: all. */
export function savedNamespace(namespaces: Namespaces): string {
  const saved = localStorage.getItem(SAVED) ?? "";
  return namespaces.items.includes(saved) ? saved : "";
}

export function saveNamespace(name: string): void {
  localStorage.setItem(SAVED, name);
}

/** Returns the namespaces for a list request; empty: all namespaces. */
export function scopeOf(namespaces: Namespaces, selected: string): string[] {
  if (selected) return [selected];
  return namespaces.everywhere ? [] : namespaces.items.slice(0, MOST_NAMESPACES);
}

/** Whether what runs is listed apart: unless a phase or a text is asked for. */
export function isApart(query: ListQuery): boolean {
  return !query.state && !query.search;
}

/** Whether requests without a run are listed, too. */
export function showsUnstarted(query: ListQuery): boolean {
  return !FILTERS.some((name) => query[name]);
}

export function listQuestion(query: ListQuery, scope: readonly string[]): Question {
  return { ...questionOf(query), namespace: scope, limit: LIMIT };
}

/** Asks for what waits and runs. */
export function activeQuestion(query: ListQuery, scope: readonly string[]): Question {
  return { ...listQuestion(query, scope), sort: query.sort === "oldest" ? "oldest" : "newest", state: ACTIVE };
}

/** Asks for a page of what has finished, or of everything where nothing is listed apart. */
export function pageQuestion(query: ListQuery, scope: readonly string[], token?: string): Question {
  return { ...listQuestion(query, scope), ...(isApart(query) ? { state: FINISHED } : {}), continue: token };
}

export function unstartedQuestion(scope: readonly string[]): Question {
  return { namespace: scope, limit: UNSTARTED_LIMIT };
}
