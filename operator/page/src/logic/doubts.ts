/** Tells why the confidence in a finding is not higher. */
import type { Finding, Flaw, Investigation } from "../api/types";
import { isDoubted, shownConfidence } from "./confidence";
import { counted } from "./format";
import { supportOf } from "./support";
import { DOUBTS, FLAWS } from "../words";

/** Flaws that a sentence of their own tells about. */
const TOLD: readonly Flaw[] = ["EvidenceDegraded", "UnsupportedClaims", "UngroundedClaims", "ContradictedClaims", "BudgetReached"];

export function doubtsOf(finding: Finding, item: Investigation): string[] {
  const kinds = finding.claims.map(supportOf);
  const of = (kind: ReturnType<typeof supportOf>) => kinds.filter((one) => one === kind).length;
  const uncalled = item.conditions.find((one) => one.type === "EvidenceDegraded" && one.status === "True" && one.reason === "NoToolCalled");
  const found = [
    ...(isDoubted(finding) ? [`${shownConfidence(finding)}: ${DOUBTS.calibration}`] : []),
    ...item.evidenceMissing.map((missing) => `${DOUBTS.missing} ${missing}`),
    ...(uncalled ? [uncalled.message] : []),
    ...(of("unsupported") > 0 ? [`${counted(of("unsupported"), "unsupported")}.`] : []),
    ...(of("ungrounded") > 0 ? [`${counted(of("ungrounded"), "ungrounded")}.`] : []),
    ...(of("contradicted") > 0 ? [`${counted(of("contradicted"), "contradicted")}.`] : []),
    ...(item.budgetExceeded ? [item.budgetExceeded.message] : []),
    ...finding.notes,
    ...(item.flaws ?? []).filter((flaw) => !TOLD.includes(flaw)).map((flaw) => FLAWS[flaw].what),
  ];
  if (found.length === 0 && finding.confidence !== "High") return [DOUBTS.own];
  return [...new Set(found)];
}
