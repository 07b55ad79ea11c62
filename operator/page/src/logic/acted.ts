/** Tells what stages of kind action did: by the record, with the word of their model beside it. */
import type { Acted, Investigation, StageChange } from "../api/types";
import { ACTED } from "../words";

export type ActedMark = { text: string; title: string; warn: boolean };

/** Returns what the stages of a run did, in order; what was told live replaces what was read before. */
export function actionsOf(item: Pick<Investigation, "stages">, stages: ReadonlyMap<number, StageChange>): Acted[] {
  const read = new Map(item.stages.map((stage) => [stage.index, stage.acted ?? null]));
  for (const [index, stage] of stages) if (stage.acted) read.set(index, stage.acted);
  return [...read].sort(([one], [other]) => one - other).flatMap(([, acted]) => (acted ? [acted] : []));
}

/** Returns the mark of a stage; null for other stages, and while it has neither acted nor ended. */
export function markOf(acted: Acted | null | undefined, state: string | null): ActedMark | null {
  if (!acted || (!acted.acted && (state === "running" || state === "pending"))) return null;
  const title = [acted.sentence, acted.contradiction].filter(Boolean).join(" ");
  const text = acted.contradiction ? ACTED.contradicted : acted.acted ? ACTED.yes : ACTED.no;
  return { text, title, warn: acted.contradiction !== null };
}
