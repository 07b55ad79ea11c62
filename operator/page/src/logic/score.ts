/** What scores of judges look like. */
import { SCORE_STATE_WORDS } from "../words";

/** Points from which a score is good, and fair: the bands that judges are told. */
export const GOOD = 60;
export const FAIR = 35;

/** Returns the state of a run whose colour a score has. */
export function stateOfPoints(points: number | null): string {
  if (points === null) return "pending";
  return points >= GOOD ? "completed" : points >= FAIR ? "timed_out" : "failed";
}

/** Returns the word for the state of a scoring; a newer server may have others. */
export function wordOfScore(state: string): string {
  return (SCORE_STATE_WORDS as Record<string, string>)[state] ?? state;
}

/** Returns the scores to show: of each suite the first, which is the newest of its present judge. */
export function shownScores<S extends { suiteUid: string }>(scores: readonly S[]): S[] {
  return scores.filter((one, place) => scores.findIndex((other) => other.suiteUid === one.suiteUid) === place);
}
