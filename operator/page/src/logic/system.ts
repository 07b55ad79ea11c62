/** Filters configuration objects, and says in a few words what keeps investigations from starting. */
import type { ActivityShown, Chain, ConfigurationItem, ConfigurationShown, ObjectName, PlanPart, Queue, QueueItem } from "../api/types";
import { HEALTH, SYSTEM } from "../words";
import { counted } from "./format";

export type HealthWord = ConfigurationItem["health"];
export type SystemQuery = { search: string; kind: string; health: string; object: string; plan: string; type: string; from: string; period: string };
export const NO_SYSTEM_QUERY: SystemQuery = { search: "", kind: "", health: "", object: "", plan: "", type: "", from: "", period: "" };

/** Returns the id of an object in the URL. */
export function idOf(object: ObjectName): string {
  return `${object.kind}/${object.namespace}/${object.name}`;
}

/** Returns the objects of a kind and health that contain all words of the search, in any case. */
export function filtered(items: readonly ConfigurationItem[], query: SystemQuery): ConfigurationItem[] {
  const wanted = query.search.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter((item) => {
    if (query.kind && item.kind !== query.kind) return false;
    if (query.health && item.health !== query.health) return false;
    const text = [item.kind, item.namespace, item.name, item.reason, item.message, item.summary, item.address ?? "", item.lastError ?? ""].join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** Counts objects by health, the worst first; those without an object are left out. */
export function healthCounts(items: readonly ConfigurationItem[]): [HealthWord, number][] {
  const order: HealthWord[] = ["NotReady", "Degraded", "Unknown", "Ready"];
  return order.map((health): [HealthWord, number] => [health, items.filter((item) => item.health === health).length]).filter(([, n]) => n > 0);
}

/** Returns the state by whose colour a health is drawn. */
export function stateOfHealth(health: HealthWord): string {
  return { NotReady: "failed", Degraded: "cancelled", Unknown: "pending", Ready: "completed" }[health];
}

/** Counts what waits by reason, the most frequent first. */
export function reasonCounts(items: readonly QueueItem[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item.reason, (counts.get(item.reason) ?? 0) + 1);
  return [...counts].sort((one, two) => two[1] - one[1] || one[0].localeCompare(two[0]));
}

/** Answers why nothing starts: the state of the workers first, then the reasons of what waits. */
export function whyNothingStarts(queue: Queue): { text: string; bad: boolean } {
  const waits = reasonCounts(queue.items).map(([reason, n]) => `${n} ${reason}`).join(", ");
  const more = queue.omitted > 0 ? `, ${counted(queue.omitted, "moreWaiting")}` : "";
  if (queue.workers === 0) return { text: `${SYSTEM.noWorker}${waits ? ` ${SYSTEM.waits}: ${waits}${more}.` : ""}`, bad: true };
  if (!waits) return { text: SYSTEM.nothingWaits, bad: false };
  return { text: `${SYSTEM.waits}: ${waits}${more}.`, bad: queue.items.some((item) => item.reason !== SYSTEM.inLine) };
}

/** Answers what is broken: the objects that are not ready or degraded, the first few by name. */
export function whatIsBroken(found: ConfigurationShown): { text: string; bad: boolean } {
  const broken = found.items.filter((item) => item.health === "NotReady" || item.health === "Degraded");
  if (broken.length === 0) return { text: SYSTEM.nothingBroken, bad: false };
  const shown = broken.slice(0, 3).map((item) => `${item.kind} ${item.namespace}/${item.name} ${HEALTH[item.health].toLowerCase()} (${item.reason})`);
  const rest = broken.length - shown.length;
  return { text: `${shown.join("; ")}${rest > 0 ? `; ${counted(rest, "moreObjects")}` : ""}.`, bad: true };
}

export type Hour = { hoursAgo: number; succeeded: number; failed: number };

/** Returns an entry for each hour of the period, the oldest first, by object. */
export function hoursByObject(activity: ActivityShown): Map<string, Hour[]> {
  return new Map(
    activity.items.map((item) => {
      const known = new Map(item.hours.map((hour) => [hour.hoursAgo, hour]));
      const hours = Array.from({ length: activity.hours }, (_, n) => activity.hours - 1 - n);
      return [idOf(item), hours.map((hoursAgo) => known.get(hoursAgo) ?? { hoursAgo, succeeded: 0, failed: 0 })];
    }),
  );
}

/** Returns how an hour is drawn: nothing, all well, some failed, all failed. */
export function toneOf(hour: Hour): "none" | "good" | "mixed" | "bad" {
  if (hour.succeeded + hour.failed === 0) return "none";
  if (hour.failed === 0) return "good";
  return hour.succeeded === 0 ? "bad" : "mixed";
}

/** Describes hours in a sentence, for people who do not see the strip. */
export function describedHours(hours: readonly Hour[], noun: "calls" | "runs"): string {
  const all = hours.reduce((sum, hour) => sum + hour.succeeded + hour.failed, 0);
  const failed = hours.reduce((sum, hour) => sum + hour.failed, 0);
  if (all === 0) return SYSTEM.noneInPeriod;
  const last = [...hours].reverse().find((hour) => hour.failed > 0);
  const when = last ? `, ${SYSTEM.lastFailed} ${last.hoursAgo === 0 ? SYSTEM.thisHour : `${last.hoursAgo} h`}` : "";
  return `${counted(all, noun)}, ${failed} ${SYSTEM.failed}${when}`;
}

/** Returns what to plan for: the alert type and namespace of the address, where the chain has them, else its first ones. */
export function planQuestion(chain: Chain, query: SystemQuery, namespace: string): { namespace: string; alertType: string; chain: string } {
  const alertType = chain.alertTypes.includes(query.type) ? query.type : (chain.alertTypes[0] ?? SYSTEM.anyType);
  return { namespace: query.from || namespace || chain.namespace, alertType, chain: chain.name };
}

/** Returns the warnings of a plan with the parts that they concern, each once. */
export function warningsOf(part: PlanPart, path = ""): string[] {
  const here = part.name ? `${path}${path ? " > " : ""}${part.name}` : path;
  const own = [...part.warnings, ...part.settings.flatMap((one) => one.warnings.map((text) => `${one.name} ${one.value.split(" ")[0]}: ${text}`))];
  const found = [...own.map((text) => (here ? `${here}: ${text}` : text)), ...part.parts.flatMap((one) => warningsOf(one, here))];
  return [...new Set(found)];
}
