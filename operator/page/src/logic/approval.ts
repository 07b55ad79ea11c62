/** Computes what the web UI says of a call that waits for people, without drawing it. */
import type { ApprovalItem, ApprovalView, Finding } from "../api/types";
import { duration } from "./format";

export type Decision = "Approve" | "Reject";

export function waits(item: ApprovalItem): boolean {
  return item.phase === "Pending";
}

/** Returns the state of a badge for the phase of an approval; a newer server may send other phases. */
export function stateOfApproval(phase: string): string {
  const states: Record<string, string> = { Pending: "pending", Approved: "running", Executed: "completed", Expired: "cancelled", Withdrawn: "cancelled" };
  return Object.hasOwn(states, phase) ? (states[phase] ?? "failed") : "failed";
}

/** Returns the time that people have left, as text; null: it is over. */
export function timeLeft(item: ApprovalItem, now: number): string | null {
  const left = Date.parse(item.expiresAt) - now;
  return left > 0 ? duration(Math.ceil(left / 1000) * 1000) : null;
}

/** Returns why a person cannot decide so; null: they can, as far as the object tells. The server checks it again. */
export function hindrance(view: ApprovalView, decision: Decision, username: string, now: number): string | null {
  if (!waits(view)) return `It is decided: ${view.phase}${view.decidedBy.length > 0 ? ` by ${view.decidedBy.join(", ")}` : ""}.`;
  if (Date.parse(view.expiresAt) <= now) return "The time to decide is over; the call is not made.";
  const own = view.decisions.find((one) => one.username === username);
  if (own) return `You have decided: ${own.decision}. A decision cannot be changed.`;
  if (decision === "Approve" && view.requesters.includes(username)) return "You started the run that asks, so you cannot approve its calls. Ask a colleague, or reject it.";
  return null;
}

/** Returns the name to type before a destructive call is approved; null: none is asked for. */
export function nameToType(view: ApprovalView): string | null {
  if (view.access !== "destructive") return null;
  const named = view.target ?? `${view.server}.${view.tool}`;
  return named.slice(named.lastIndexOf("/") + 1);
}

/** Returns why no decision counts now, in the words of the operator; null: nothing is known against it. */
export function notEnforced(view: ApprovalView): string | null {
  return view.conditions.find((one) => one.type === "ApprovalsEnforced" && one.status === "False")?.message ?? null;
}

export type DiffLine = { kind: "added" | "removed" | "place" | "same"; text: string };

export function diffLines(diff: string): DiffLine[] {
  return diff.replace(/\n$/, "").split("\n").map((text) => ({ kind: kindOf(text), text }));
}

function kindOf(line: string): DiffLine["kind"] {
  if (line.startsWith("@@") || line.startsWith("---") || line.startsWith("+++")) return "place";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}

/** Orders the queue: what waits first, then what expires first. */
export function queued(items: readonly ApprovalItem[]): ApprovalItem[] {
  const place = (one: ApprovalItem) => `${waits(one) ? 0 : 1} ${new Date(one.expiresAt).toISOString()} ${one.namespace}/${one.name}`;
  return [...items].sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

/** Names the objects of a change for Git and what manages them. */
export function managers(change: NonNullable<Finding["changesForGit"]>[number]): string {
  return change.objects.map((one) => `${one.object} is managed by ${one.managedBy}`).join("; ");
}
