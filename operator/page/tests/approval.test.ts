import { describe, expect, it } from "vitest";
import { APPROVAL, ITEM } from "../fixtures/approvals";
import { diffLines, hindrance, nameToType, notEnforced, queued, stateOfApproval, timeLeft } from "../src/logic/approval";
import { approvalLink, parse } from "../src/logic/route";

const END = Date.parse(APPROVAL.expiresAt);

describe("a person", () => {
  it.each([
    ["ben", "Approve", END - 1, null],
    ["ben", "Approve", END, "The time to decide is over"],
    ["rita@example.org", "Approve", END - 1, "so you cannot approve its calls"],
    ["rita@example.org", "Reject", END - 1, null],
  ] as const)("%s may decide %s or is told why not", (username, decision, now, words) => {
    const why = hindrance(APPROVAL, decision, username, now);
    if (words === null) expect(why).toBeNull();
    else expect(why).toContain(words);
  });

  it("decides once", () => {
    const decided = { ...APPROVAL, decisions: [{ username: "ben", decision: "Reject", argumentsDigest: APPROVAL.argumentsDigest, reason: null, at: null }] };
    expect(hindrance(decided, "Approve", "ben", END - 1)).toContain("cannot be changed");
    expect(hindrance(decided, "Approve", "anna", END - 1)).toBeNull();
    expect(hindrance({ ...APPROVAL, phase: "Rejected", decidedBy: ["ben"] }, "Reject", "anna", END - 1)).toBe("It is decided: Rejected by ben.");
  });

  it("types the name of the target of a destructive call only", () => {
    expect(nameToType(APPROVAL)).toBeNull();
    expect(nameToType({ ...APPROVAL, access: "destructive" })).toBe("checkout");
    expect(nameToType({ ...APPROVAL, access: "destructive", target: null })).toBe("deploy.rollback");
  });
});

describe("a call", () => {
  it("counts down to its last second", () => {
    expect(timeLeft(APPROVAL, END - 61_000)).toBe("1 m 1 s");
    expect(timeLeft(APPROVAL, END - 1)).toBe("1.0 s");
    expect(timeLeft(APPROVAL, END)).toBeNull();
  });

  it("says when no decision counts", () => {
    expect(notEnforced(APPROVAL)).toBeNull();
    const message = "Nothing runs.";
    expect(notEnforced({ ...APPROVAL, conditions: [{ type: "ApprovalsEnforced", status: "False", reason: "ForgeryAdmitted", message }] })).toBe(message);
  });

  it("is ordered by need", () => {
    const done = { ...ITEM, name: "done", phase: "Executed" };
    const soon = { ...ITEM, name: "soon", expiresAt: "2026-11-22T03:13:00Z" };
    expect(queued([done, ITEM, soon]).map((one) => one.name)).toEqual(["soon", ITEM.name, "done"]);
    expect([stateOfApproval("Pending"), stateOfApproval("Executed"), stateOfApproval("OfTomorrow")]).toEqual(["pending", "completed", "failed"]);
  });

  it("has a link of its own", () => {
    expect(parse(approvalLink("shop", "scale"))).toEqual({ view: "approval", namespace: "shop", name: "scale" });
    expect(parse("#/approvals")).toEqual({ view: "approvals" });
  });
});

describe("a diff", () => {
  it("tells added from removed lines", () => {
    expect(diffLines("--- now\n+++ then\n@@ spec @@\n a: 1\n-b: 1\n+b: 2\n").map((line) => line.kind)).toEqual(["place", "place", "place", "same", "removed", "added"]);
  });
});
