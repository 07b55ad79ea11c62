/**
 * Parses and builds URLs of views. The whole route is in the fragment (`#`): links can be shared, and no server sees it.
 */
import { FLAWS, GROUPS } from "../words";
import { readReviewState, type ReviewState } from "./review";
import { NO_SYSTEM_QUERY, type SystemQuery } from "./system";

export type Route =
  | { view: "list"; query: ListQuery }
  | { view: "investigation"; namespace: string; name: string; event: string | null; quote: string | null }
  | { view: "trace"; namespace: string; name: string; call: string | null }
  | { view: "compare"; namespace: string; first: string; second: string }
  | { view: "suites" }
  | { view: "suite"; namespace: string; name: string; run: string | null; kase: string | null }
  | { view: "approvals" }
  | { view: "reviews"; state: ReviewState }
  | { view: "approval"; namespace: string; name: string }
  | { view: "submit" }
  | { view: "system"; query: SystemQuery }
  | { view: "usage"; by: UsageGroup; days: number; show: Measure | null }
  | { view: "sign-in"; code: string; next: string }
  | { view: "nowhere" };

export type UsageGroup = keyof typeof GROUPS;
export const MEASURES = ["cost", "tokens"] as const;
export type Measure = (typeof MEASURES)[number];

export const FILTERS = ["state", "flaw", "severity", "outcome", "alertType", "chain", "author", "since", "until", "search", "searchIn"] as const;
export const SORTS = ["newest", "oldest", "finished", "duration", "severity", "confidence", "cost", "tokens"] as const;
export type ListQuery = Partial<Record<(typeof FILTERS)[number], string>> & { sort?: string };

/** Returns the parameters of the request of a list; `flaw=any` asks for all flaws. */
export function questionOf(query: ListQuery): Record<string, string | readonly string[]> {
  return { ...query, ...(query.flaw === "any" ? { flaw: Object.keys(FLAWS) } : {}) };
}

export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const [first = "", ...rest] = path.split("/").filter(Boolean).map(decoded);
  const query = new URLSearchParams(search);
  switch (first) {
    case "":
    case "investigations": {
      const [namespace, name, part] = rest;
      if (namespace && name && part === "trace") return { view: "trace", namespace, name, call: query.get("call") };
      if (namespace && name) return { view: "investigation", namespace, name, event: query.get("event"), quote: query.get("quote") };
      return { view: "list", query: readList(query) };
    }
    case "compare": {
      const [namespace, one, two] = rest;
      return namespace && one && two ? { view: "compare", namespace, first: one, second: two } : { view: "nowhere" };
    }
    case "suites": {
      const [namespace, name] = rest;
      return namespace && name ? { view: "suite", namespace, name, run: query.get("run"), kase: query.get("case") } : { view: "suites" };
    }
    case "approvals": {
      const [namespace, name] = rest;
      return namespace && name ? { view: "approval", namespace, name } : { view: "approvals" };
    }
    case "reviews":
      return { view: "reviews", state: readReviewState(query.get("state")) };
    case "submit":
      return { view: first };
    case "system":
      return { view: "system", query: readSystem(query) };
    case "usage":
      return {
        view: "usage",
        by: (Object.keys(GROUPS) as UsageGroup[]).find((one) => one === query.get("by")) ?? "chain",
        days: readDays(query.get("days")),
        show: MEASURES.find((one) => one === query.get("show")) ?? null,
      };
    case "sign-in":
      return { view: "sign-in", code: rest[0] ?? "", next: `/${rest.slice(1).map(encodeURIComponent).join("/")}` };
    default:
      return { view: "nowhere" };
  }
}

/** Returns a number of days from 1 to 366, or 30. */
export function readDays(text: string | null): number {
  const days = Number(text);
  return days >= 1 && days <= 366 ? Math.floor(days) : 30;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function readList(query: URLSearchParams): ListQuery {
  const found: ListQuery = {};
  for (const name of FILTERS) {
    const value = query.get(name)?.trim();
    if (value) found[name] = value;
  }
  const sort = query.get("sort");
  if (sort && (SORTS as readonly string[]).includes(sort)) found.sort = sort;
  return found;
}

function readSystem(query: URLSearchParams): SystemQuery {
  const names = Object.keys(NO_SYSTEM_QUERY) as (keyof SystemQuery)[];
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])) as SystemQuery;
}

export function systemLink(query: SystemQuery): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/system${text ? `?${text}` : ""}`;
}

export function listLink(query: ListQuery): string {
  const found = new URLSearchParams();
  for (const name of [...FILTERS, "sort"] as const) {
    const value = query[name];
    if (value && !(name === "sort" && value === "newest")) found.set(name, value);
  }
  const text = found.toString();
  return `#/investigations${text ? `?${text}` : ""}`;
}

/** Returns the link of an investigation, of an event of it, or of a quote in the event, which is marked there. */
export function investigationLink(namespace: string, name: string, event?: string, quote?: string): string {
  const query = event ? `?event=${event}${quote ? `&quote=${encodeURIComponent(quote)}` : ""}` : "";
  return `#/investigations/${namespace}/${name}${query}`;
}

export function traceLink(namespace: string, name: string, call?: string): string {
  return `#/investigations/${namespace}/${name}/trace${call ? `?call=${call}` : ""}`;
}

export function compareLink(namespace: string, first: string, second: string): string {
  return `#/compare/${namespace}/${first}/${encodeURIComponent(second)}`;
}

export function reviewsLink(state: ReviewState): string {
  return `#/reviews?state=${state}`;
}

export function usageLink(by: UsageGroup, days: number, show: Measure | null): string {
  return `#/usage?by=${by}&days=${days}${show ? `&show=${show}` : ""}`;
}

export function approvalLink(namespace: string, name: string): string {
  return `#/approvals/${namespace}/${name}`;
}

export function suiteLink(namespace: string, name: string, run?: string, kase?: string): string {
  const query = new URLSearchParams({ ...(run ? { run } : {}), ...(kase ? { case: kase } : {}) }).toString();
  return `#/suites/${namespace}/${name}${query ? `?${query}` : ""}`;
}
