import { describe, expect, it } from "vitest";
import { blocksOf, partsOf } from "../src/logic/blocks";
import { EMPTY, reduce } from "../src/logic/timeline";
import { event, stage, stageChange, told, CHANNEL, RUN } from "../fixtures/build";

describe("blocks of a text that streams", () => {
  it("end at blank lines, and the last one is what is not complete", () => {
    expect(blocksOf("")).toEqual([""]);
    expect(blocksOf("One")).toEqual(["One"]);
    expect(blocksOf("# One\n\n\n- two\n- three\n\nfo")).toEqual(["# One", "- two\n- three", "fo"]);
    expect(blocksOf("One\n\n")).toEqual(["One", ""]);
  });

  it("do not end within a fence of code, whatever it contains", () => {
    expect(blocksOf("```sh\na\n\nb\n```\n\nc")).toEqual(["```sh\na\n\nb\n```", "c"]);
    expect(blocksOf("````\n```\n\nb")).toEqual(["````\n```\n\nb"]);
    expect(blocksOf("~~~\n\n```\n\n~~~\n\nb")).toEqual(["~~~\n\n```\n\n~~~", "b"]);
  });
});

describe("parts of a text that are parsed apart", () => {
  it("are its blocks, but for those that may go on with the one before", () => {
    expect(partsOf([""])).toEqual([]);
    expect(partsOf(["# One", "Two", "```\na\n```", "**three**"])).toEqual(["# One", "Two", "```\na\n```", "**three**"]);
    const going = ["- one", "- two", "  still two", "3. three", "4) four", "> five", "+ six", "* seven", "[eight]: https://example.org"];
    expect(partsOf([...going, "Nine"])).toEqual([going.join("\n\n"), "Nine"]);
  });
});

describe("parts of a timeline that a message is not about", () => {
  it("stay the same objects", () => {
    const first = reduce(EMPTY, [{ type: "stage.changed", channel: CHANNEL, investigation: RUN, question: null, stage: stageChange(stage(0, "look", [])) }]);
    const second = reduce(first, [told(event("llm_response", "Hm."))]);
    expect([second.stages, second.answers, second.early]).toEqual([first.stages, first.answers, first.early]);
    expect(second.stages).toBe(first.stages);
    expect(second.early).toBe(first.early);
  });
});
