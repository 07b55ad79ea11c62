/**
 * Holds the timeline of a run as messages change it, and tells the readers of one event that its text has grown.
 *
 * Decision: new words change nothing but the text of their event, so they draw the events that show it, not the view.
 */
import type { ServerMessage } from "../api/types";
import { EMPTY, reduce, type Ev, type Timeline } from "./timeline";

export class Streams {
  timeline: Timeline = EMPTY;
  private readonly readers = new Map<string, Set<() => void>>();

  /** Takes messages; returns whether they changed more than texts that stream. */
  take(messages: readonly ServerMessage[]): boolean {
    const before = this.timeline;
    this.timeline = reduce(before, messages);
    const grown = new Set(messages.map((message) => (message.type === "delta" ? message.event : "")));
    for (const id of grown) {
      if (before.events.get(id) !== this.timeline.events.get(id)) for (const tell of this.readers.get(id) ?? []) tell();
    }
    return messages.some((message) => message.type !== "delta") || messages.length === 0;
  }

  /** Returns an event with all words so far. */
  event(id: string): Ev | undefined {
    return this.timeline.events.get(id);
  }

  /** Calls `tell` when words of an event arrive; returns a function that ends it. */
  follow(id: string, tell: () => void): () => void {
    const all = this.readers.get(id) ?? new Set();
    this.readers.set(id, all.add(tell));
    return () => {
      all.delete(tell);
      if (all.size === 0) this.readers.delete(id);
    };
  }
}
