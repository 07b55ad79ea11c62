import { describe, expect, it } from "vitest";
import { shownScores, stateOfPoints, wordOfScore } from "../src/logic/score";

describe("scores", () => {
  it("have a colour by the bands that judges are told", () => {
    expect([null, 0, 34, 35, 59, 60, 100].map(stateOfPoints)).toEqual(["pending", "failed", "failed", "timed_out", "timed_out", "completed", "completed"]);
  });

  it("are shown once for each suite, the first one", () => {
    const scores = [{ suiteUid: "a", round: 2 }, { suiteUid: "a", round: 1 }, { suiteUid: "b", round: 1 }];
    expect(shownScores(scores)).toEqual([{ suiteUid: "a", round: 2 }, { suiteUid: "b", round: 1 }]);
  });

  it("have a word for each state, and that of a newer server as it is", () => {
    expect([wordOfScore("Waiting"), wordOfScore("Newer")]).toEqual(["Waits", "Newer"]);
  });
});
