/**
 * Merges changes into a page of a list.
 *
 * Decision: items of the page are replaced in place. New items are added on top only if no filter is set and the newest
 * come first; only the server can apply a filter or another order, so otherwise they are counted. Items that were
 * accepted outside the selected period are ignored.
 */
import type { Item, State } from "../api/types";
import { FILTERS, type ListQuery } from "./route";

export type Asked = {
  query: ListQuery;
  first: boolean;
  limit: number;
  /** States of a list that is one of several; items of other states leave it. */
  states?: readonly State[];
};

export function merged(page: readonly Item[], changes: ReadonlyMap<string, Item>, asked: Asked): { shown: Item[]; waiting: number } {
  const known = new Set(page.map((item) => item.uid));
  const { states } = asked;
  const belongs = (item: Item) => states === undefined || states.includes(item.state);
  const shown = page
    .map((item) => {
      const changed = changes.get(item.uid);
      return changed && changed.revision > item.revision ? changed : item;
    })
    .filter(belongs);
  const { since, until } = asked.query;
  const inTime = (item: Item) => !(since && Date.parse(item.acceptedAt) < Date.parse(since)) && !(until && Date.parse(item.acceptedAt) >= Date.parse(until));
  const fresh = [...changes.values()].filter((item) => !known.has(item.uid) && inTime(item) && belongs(item));
  const plain = asked.first && (asked.query.sort ?? "newest") === "newest" && !FILTERS.some((name) => asked.query[name]);
  if (plain) {
    const oldest = page.length >= asked.limit ? page.at(-1)?.acceptedAt : undefined;
    const newer = fresh.filter((item) => oldest === undefined || item.acceptedAt > oldest);
    const all = [...newer, ...shown].sort((a, b) => (a.acceptedAt < b.acceptedAt ? 1 : a.acceptedAt > b.acceptedAt ? -1 : 0));
    return { shown: all, waiting: 0 };
  }
  const before = new Map(page.map((item) => [item.uid, item.state]));
  const moved = shown.filter((item) => item.state !== before.get(item.uid) && (asked.query.state ?? item.state) !== item.state);
  return { shown, waiting: asked.first ? fresh.length + moved.length : 0 };
}
