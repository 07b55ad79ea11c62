/** Shows the confidence of a finding as people read it: as calibrated, where people found it wrong too often. */
import type { Finding } from "../api/types";
import { isDoubted, shownConfidence } from "../logic/confidence";
import { CONFIDENCE, DOUBTS } from "../words";

type Props = { finding: Pick<Finding, "confidence" | "shownConfidence">; brief?: boolean };

/** `brief`: as one word, for lists. */
export function ConfidenceTag({ finding, brief = false }: Props) {
  const doubted = isDoubted(finding);
  return (
    <span data-answer={brief ? undefined : "confidence"} className={`confidence c-${doubted ? "doubted" : finding.confidence}`} title={doubted ? DOUBTS.calibration : CONFIDENCE[finding.confidence]}>
      {brief && !doubted ? finding.confidence : shownConfidence(finding)}
    </span>
  );
}
