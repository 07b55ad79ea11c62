/**
 * Formats numbers, amounts and times. An unknown value is a dash, never a zero.
 *
 * Decision: formats of Intl are made once each, when first used: making one takes about as long as drawing a row.
 */
import type { Spent } from "../api/types";
import { NOUNS, PHASES, STEPS } from "../words";
import { inZone, savedZone } from "./zone";

const SECONDS = { hour: "numeric", minute: "numeric", second: "numeric" } as const;
const MINUTES = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { day: "numeric", month: "short" } as const;
const WHOLE = { ...DAY, year: "numeric", ...MINUTES, second: "2-digit", timeZoneName: "short" } as const;

const plain = once(() => new Intl.NumberFormat("en"));
const compact = once(() => new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" }));
const toSecond = timeFormat(SECONDS);
const toMinute = timeFormat(MINUTES);
const toDay = timeFormat(DAY);
const inFull = timeFormat(WHOLE);

export function count(value: number): string {
  return (value < 10_000 ? plain() : compact()).format(value);
}

export function tokens(spent: Spent): string {
  const all = spent.totalTokens;
  return all === 0 && spent.usageComplete ? "0" : `${count(all)}${spent.usageComplete ? "" : "+"}`;
}

export function cost(spent: { costUSD: number | null; costComplete?: boolean }): string {
  if (spent.costUSD === null) return "–";
  return dollars(spent.costUSD) + (spent.costComplete === false ? "+" : "");
}

export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  return amount < 0.01 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`;
}

export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function between(from: string | null, to: string | null, now: number): string {
  if (!from) return "–";
  return duration((to ? Date.parse(to) : now) - Date.parse(from));
}

export function ago(at: string, now: number): string {
  const seconds = (now - Date.parse(at)) / 1000;
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} m`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function clock(at: string): string {
  return toSecond(at);
}

/** Writes date, time and zone. */
export function moment(at: string): string {
  return inFull(at);
}

/** Writes the time of a moment of the last day, the date of others. */
export function shortMoment(at: string, now: number): string {
  return now - Date.parse(at) < 86_400_000 ? toMinute(at) : toDay(at);
}

/** Converts a name of the API to words: `timed_out` becomes "timed out". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** Looks up a name that may be unknown to this build of the web UI. */
export function wordOf(table: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Returns the phase of an investigation or of an answer, as kubectl shows it. A newer server may send other states. */
export function phase(state: string, desired?: string): string {
  const shown = state === "running" && desired === "Concluded" ? "concluding" : state;
  return wordOf(PHASES, shown) ?? words(state);
}

/** Returns the phase of a stage, an agent, a call or an event. */
export function step(state: string): string {
  return wordOf(STEPS, state) ?? words(state);
}

/** Writes a count with its noun: "1 event", "2 events". */
export function counted(value: number, noun: keyof typeof NOUNS): string {
  return `${count(value)} ${NOUNS[noun][value === 1 ? 0 : 1]}`;
}

/** Shortens the name of a ServiceAccount; keeps other names. */
export function author(name: string): string {
  return name.replace(/^system:serviceaccount:/, "");
}

/** Indents JSON; returns other text unchanged. */
export function pretty(text: string): string {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed)) return text;
  try {
    return JSON.stringify(JSON.parse(trimmed), null, 2);
  } catch {
    return text;
  }
}

/** Returns a function that makes a value when it is first called. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** Returns a function that writes a time in the selected zone. */
function timeFormat(options: Intl.DateTimeFormatOptions): (at: string) => string {
  const made = new Map<string, Intl.DateTimeFormat>();
  return (at) => {
    const date = new Date(at);
    if (Number.isNaN(date.getTime())) return String(date);
    const zone = savedZone();
    const format = made.get(zone) ?? new Intl.DateTimeFormat("en-GB", { ...options, ...inZone() });
    made.set(zone, format);
    return format.format(date);
  };
}
