/** Arranges changes around the onset for the strip above the timeline. */
import type { Change, ChangedObject, Changes } from "../api/types";
import { duration } from "./format";

/** Maximum signals and changes that are shown before the reader asks for more. */
export const SHOWN = 3;

export type Mark = { at: number; order: string };

/** Returns whether there is anything to show. */
export function isEmpty(changes: Changes): boolean {
  return changes.changes.length === 0 && changes.signals.length === 0;
}

/** Returns the candidate that is ranked first; null without one. */
export function firstOf(changes: Changes): Change | null {
  return changes.changes.find((one) => one.order === "Candidate") ?? null;
}

export function nameOf(object: ChangedObject): string {
  return object.namespace ? `${object.kind} ${object.namespace}/${object.name}` : `${object.kind} ${object.name}`;
}

/** Describes a time relative to the onset, such as "19 s before the onset"; empty without an onset. */
export function relative(at: string, onset: string | null): string {
  if (onset === null) return "";
  const milliseconds = Date.parse(at) - Date.parse(onset);
  if (Number.isNaN(milliseconds)) return "";
  if (milliseconds === 0) return "at the onset";
  return `${duration(Math.abs(milliseconds))} ${milliseconds < 0 ? "before" : "after"} the onset`;
}

/**
 * Places changes and the onset on a line from 0 to 100.
 *
 * Decision: the distance from the onset is drawn by its logarithm, because the changes that matter are seconds away from
 * it and the window is hours long. Without an onset the end of the line is the last change.
 */
export function marksOf(changes: Changes): { onset: number | null; marks: Mark[] } {
  const times = changes.changes.map((one) => Date.parse(one.at)).filter((time) => !Number.isNaN(time));
  const centre = changes.onset === null ? Math.max(...times) : Date.parse(changes.onset);
  const scaled = (time: number) => Math.sign(time - centre) * Math.log1p(Math.abs(time - centre) / 1000);
  const ends = times.map(scaled);
  const first = Math.min(0, ...ends);
  const last = Math.max(0, ...ends);
  const place = (value: number) => (last === first ? 50 : 2 + (96 * (value - first)) / (last - first));
  const marks = changes.changes.flatMap((one) => {
    const time = Date.parse(one.at);
    return Number.isNaN(time) ? [] : [{ at: place(scaled(time)), order: one.order }];
  });
  return { onset: changes.onset === null ? null : place(0), marks };
}
