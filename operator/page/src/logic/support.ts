/** Tells how far the record supports a claim. */
import type { Finding } from "../api/types";

type Claim = Finding["claims"][number];

export function supportOf(claim: Claim): "supported" | "ungrounded" | "unsupported" {
  if (!claim.supported) return "unsupported";
  return claim.ungrounded.length ? "ungrounded" : "supported";
}

export function isGrounded(claim: Claim): boolean {
  return supportOf(claim) === "supported";
}
