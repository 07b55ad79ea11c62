/** Groups the rows of a list: identical alerts follow the newest of them. */
import type { Item } from "../api/types";

export type Group = { item: Item; alike: readonly Item[] };

/** Returns one group for each alert, in the order of the first of each. Items of unknown likeness are groups of one. */
export function groupsOf(items: readonly Item[]): Group[] {
  const found = new Map<string, { item: Item; alike: Item[] }>();
  for (const item of items) {
    const key = item.alertKey ?? item.uid;
    const group = found.get(key);
    if (group) group.alike.push(item);
    else found.set(key, { item, alike: [] });
  }
  return [...found.values()];
}
