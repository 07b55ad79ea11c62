/** Computes what the web UI says of what was asked for and has no run. */

/** Returns the state of a badge for the phase of an Alert or Investigation; a newer server may send other phases. */
export function stateOfRequest(phase: string): string {
  return ["Pending", "Waiting"].includes(phase) ? "pending" : "failed";
}
