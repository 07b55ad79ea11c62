/** Remembers the investigations whose end or whose question for people a reader wants to be notified of. */
import type { Item } from "../api/types";
import { FOLLOWS } from "../words";
import { phase } from "./format";

export type Followed = { namespace: string; name: string; state: string };

const KEY = "tarsy-followed";
/** Maximum number of followed investigations; the oldest are dropped. */
export const MOST = 20;

type Store = Pick<Storage, "getItem" | "setItem">;

function isFollowed(one: unknown): one is Followed {
  return typeof one === "object" && one !== null && ["namespace", "name", "state"].every((name) => typeof (one as Record<string, unknown>)[name] === "string");
}

export function savedFollows(store: Store = localStorage): Followed[] {
  try {
    const saved: unknown = JSON.parse(store.getItem(KEY) ?? "[]");
    return Array.isArray(saved) ? saved.filter(isFollowed).slice(-MOST) : [];
  } catch {
    return []; // written by another version
  }
}

export function saveFollows(all: readonly Followed[], store: Store = localStorage): void {
  store.setItem(KEY, JSON.stringify(all.slice(-MOST)));
}

function same(one: Followed, other: { namespace: string; name: string }): boolean {
  return one.namespace === other.namespace && one.name === other.name;
}

export function follows(all: readonly Followed[], run: { namespace: string; name: string }): boolean {
  return all.some((one) => same(one, run));
}

/** Returns the list with a run in its present state, or without it. */
export function turned(all: readonly Followed[], run: Followed, on: boolean): Followed[] {
  return [...all.filter((one) => !same(one, run)), ...(on ? [run] : [])];
}

const ENDED = ["completed", "failed", "cancelled", "timed_out"];

/** Returns what to tell of a run since it was last looked at, and whether it is followed on; null: nothing. */
export function newsOf(before: Followed, now: Pick<Item, "state" | "alertType" | "finding" | "failure">): { title: string; text: string; over: boolean } | null {
  const over = ENDED.includes(now.state);
  if (now.state === before.state || !(over || now.state === "parked")) return null;
  const text = now.state === "parked" ? FOLLOWS.parked : (now.finding?.summary ?? now.failure?.message ?? "");
  return { title: `${phase(now.state)}: ${now.alertType}`, text: text.slice(0, 200), over };
}
