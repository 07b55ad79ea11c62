/** States and verdicts of reviews. */
export const REVIEW_STATES = ["NeedsReview", "InProgress", "Reviewed"] as const;
export type ReviewState = (typeof REVIEW_STATES)[number];

/** Reads a state of the URL; anything else is the first one. */
export function readReviewState(text: string | null): ReviewState {
  return REVIEW_STATES.find((one) => one === text) ?? "NeedsReview";
}

/** Returns the state of a run whose colour a verdict has. */
export function stateOfReview(verdict: string): string {
  return { Right: "completed", Partly: "timed_out", Wrong: "failed" }[verdict] ?? "pending";
}

/** Parses KIND/NAME; null: it is something else, and empty text is no object. */
export function readRootCause(text: string): { kind: string; name: string } | null | undefined {
  if (text.trim() === "") return undefined;
  const found = /^([A-Za-z]{1,63})\/([a-z0-9][-a-z0-9.]{0,252})$/.exec(text.trim());
  return found?.[1] && found[2] ? { kind: found[1], name: found[2] } : null;
}
