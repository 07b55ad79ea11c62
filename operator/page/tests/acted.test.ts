/** Stages of kind action: what they are marked with, and that their words are no finding. */
import { describe, expect, it } from "vitest";
import { acted, agent, CHANNEL, event, RUN, stage, stageChange, told } from "../fixtures/build";
import { actionsOf, markOf } from "../src/logic/acted";
import { EMPTY, finalAnalysisOf, reduce, rowsOf } from "../src/logic/timeline";
import { ACTED } from "../src/words";

const acts = (did = acted(), state: "running" | "completed" = "completed") => stage(1, "act", [agent("mender")], { kind: "action", acted: did, state });
const NONE = acted({ acted: false, calls: [], sentence: "No action was taken.", word: "No" });

describe("the mark of a stage", () => {
  it("says what the record says", () => {
    expect(markOf(acted(), "completed")).toEqual({ text: ACTED.yes, title: acted().sentence, warn: false });
    expect(markOf(NONE, "completed")?.text).toBe(ACTED.no);
  });
  it("warns where the model says otherwise", () => {
    const mark = markOf(acted({ word: "No", contradiction: "The model says no." }), "completed");
    expect(mark).toEqual({ text: ACTED.contradicted, title: `${acted().sentence} The model says no.`, warn: true });
  });
  it("is not there before a stage that has not acted ends, nor on other stages", () => {
    expect(markOf(NONE, "running")).toBeNull();
    expect(markOf(acted(), "running")?.text).toBe(ACTED.yes);
    expect(markOf(null, "completed")).toBeNull();
  });
});

describe("the actions of a run", () => {
  it("are those that were told last", () => {
    const first = stage(0, "look", [agent("triage")]);
    expect(actionsOf({ stages: [first, acts(NONE)] }, new Map())).toEqual([NONE]);
    expect(actionsOf({ stages: [first, acts(NONE)] }, new Map([[1, stageChange(acts())]]))).toEqual([acted()]);
    expect(actionsOf({ stages: [first] }, new Map())).toEqual([]);
  });
});

describe("a timeline with a stage of kind action", () => {
  const of = (name: string, id: string) => ({ stage: name, stageId: id, execution: id });
  const timeline = reduce(EMPTY, [
    { type: "stage.changed", channel: CHANNEL, investigation: RUN, question: null, stage: stageChange(acts()) },
    told(event("final_analysis", "It is the disk.", of("look", "stage-0"))),
    told(event("final_analysis", "It was the moon.", of("act", "stage-1"))),
  ]);

  it("has the analysis of the stage that investigates", () => {
    expect(finalAnalysisOf(timeline)).toBe("It is the disk.");
  });
  it("marks the heading of the stage", () => {
    const heads = rowsOf(timeline, new Map()).filter((row) => row.kind === "stage");
    expect(heads.map((row) => row.kind === "stage" && row.acted)).toEqual([null, acted()]);
  });
});
