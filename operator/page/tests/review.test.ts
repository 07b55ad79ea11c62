import { describe, expect, it } from "vitest";
import { readReviewState, readRootCause, stateOfReview } from "../src/logic/review";
import { parse, reviewsLink } from "../src/logic/route";

describe("reviews", () => {
  it("have one of three states, the first one without a known word", () => {
    expect(parse(reviewsLink("Reviewed"))).toEqual({ view: "reviews", state: "Reviewed" });
    expect(parse("#/reviews")).toEqual({ view: "reviews", state: "NeedsReview" });
    expect(readReviewState("<script>")).toBe("NeedsReview");
  });

  it("have the colour of their verdict", () => {
    expect(["Right", "Partly", "Wrong", "Newer"].map(stateOfReview)).toEqual(["completed", "timed_out", "failed", "pending"]);
  });

  it.each([
    ["Deployment/checkout", { kind: "Deployment", name: "checkout" }],
    [" Pod/a.b-c ", { kind: "Pod", name: "a.b-c" }],
    ["", undefined],
    ["checkout", null],
    ["Deployment/", null],
    ["Deployment/Upper", null],
  ])("take a root cause as kind and name: %s", (text, expected) => {
    expect(readRootCause(text)).toEqual(expected);
  });
});
