/** Tells the confidence of a finding, as people read it. */
import type { Finding } from "../api/types";
import { CONFIDENCE } from "../words";

type Confident = Pick<Finding, "confidence" | "shownConfidence">;

/** Tells whether people found the Chain's findings with this confidence wrong too often: then the server adds a count. */
export function isDoubted({ confidence, shownConfidence }: Confident): boolean {
  return Boolean(shownConfidence) && shownConfidence !== confidence;
}

export function shownConfidence(finding: Confident): string {
  return isDoubted(finding) && finding.shownConfidence ? finding.shownConfidence : CONFIDENCE[finding.confidence];
}

/** Tells whether a word is a confidence that this version knows. */
export function isConfidence(word: string): word is Finding["confidence"] {
  return word in CONFIDENCE;
}
