import { describe, expect, it } from "vitest";
import type { DeltaMessage, ServerMessage } from "../src/api/types";
import { CHANNEL, event, RUN, told } from "../fixtures/build";
import { Streams } from "../src/logic/streams";

function delta(id: string, offset: number, text: string): DeltaMessage {
  return { type: "delta", channel: CHANNEL, investigation: RUN, question: null, event: id, offset, text, truncated: false };
}

const begun = (id: string): ServerMessage => told(event("llm_response", "", { id, status: "streaming" }));

function following(streams: Streams, id: string) {
  const texts: string[] = [];
  const end = streams.follow(id, () => texts.push(streams.event(id)?.content ?? ""));
  return { texts, end };
}

describe("texts that stream", () => {
  it("draw the readers of their event only, once for the words of one delivery", () => {
    const streams = new Streams();
    expect(streams.take([begun("a"), begun("b")])).toBe(true);
    const [a, b] = [following(streams, "a"), following(streams, "b")];
    expect(streams.take([delta("a", 0, "The pod "), delta("a", 8, "crashes")])).toBe(false);
    expect(a.texts).toEqual(["The pod crashes"]);
    expect(b.texts).toEqual([]);
  });

  it("draw nothing when words are told again", () => {
    const streams = new Streams();
    streams.take([begun("a"), delta("a", 0, "abc")]);
    const { texts } = following(streams, "a");
    streams.take([delta("a", 0, "abc"), delta("a", 1, "bc")]);
    expect(texts).toEqual([]);
  });

  it("draw nothing for readers that have gone", () => {
    const streams = new Streams();
    streams.take([begun("a")]);
    const [gone, stays] = [following(streams, "a"), following(streams, "a")];
    gone.end();
    streams.take([delta("a", 0, "abc")]);
    expect([gone.texts, stays.texts]).toEqual([[], ["abc"]]);
  });

  it("leave the view to be drawn by whatever else is told, also beside words", () => {
    const streams = new Streams();
    streams.take([begun("a")]);
    expect(streams.take([delta("a", 0, "abc"), told(event("llm_response", "abc.", { id: "a", revision: 2 ** 31 }))])).toBe(true);
    expect(streams.timeline.events.get("a")?.content).toBe("abc.");
    expect(streams.take([])).toBe(true);
  });
});
