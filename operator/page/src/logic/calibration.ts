/** Writes how often findings were right. */
import type { CalibratedChain, CalibratedClass } from "../api/types";
import { CALIBRATION } from "../words";
import { percent } from "./suite";

/** Returns the chains whose High is not to be relied on, or whose newest findings are worse than those before. */
export function doubtedChains(chains: readonly CalibratedChain[]): CalibratedChain[] {
  return chains.filter((chain) => chain.calibrated === false || chain.classes.some((one) => one.drifted));
}

export function interval({ low, high }: Pick<CalibratedClass, "low" | "high">): string {
  return `${Math.round(low * 100)} to ${percent(high)}`;
}

export function share({ right, total }: CalibratedClass["recent"]): string {
  return total === 0 ? "–" : `${right} ${CALIBRATION.of} ${total}`;
}
