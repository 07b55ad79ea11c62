/** Tells how far the record supports a claim. */
import type { Finding } from "../api/types";
import { INTEGRITY, QUOTES } from "../words";

type Claim = Finding["claims"][number];

export function supportOf(claim: Claim): "supported" | "contradicted" | "ungrounded" | "unsupported" {
  if (!claim.supported) return "unsupported";
  if (claim.contradicted) return "contradicted";
  return claim.ungrounded.length ? "ungrounded" : "supported";
}

/** Tells who can write the text that a citation quotes; empty where nothing tells it. */
export function writerOf(citation: Claim["citations"][number]): string {
  const words = citation.integrity ? [INTEGRITY[citation.integrity]] : [];
  return [...words, ...(citation.replaced ? [QUOTES.replaced] : [])].join("; ");
}

export function isGrounded(claim: Claim): boolean {
  return supportOf(claim) === "supported";
}
