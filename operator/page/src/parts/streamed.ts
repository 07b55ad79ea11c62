/** Provides the texts that stream to the components that show them. */
import { createContext, useCallback, useContext, useSyncExternalStore } from "react";
import type { Streams } from "../logic/streams";
import type { Ev } from "../logic/timeline";

export const StreamsContext = createContext<Streams | null>(null);

/** Returns the text of an event with all words so far; drawn again when some arrive. */
export function useStreamed(ev: Ev): string {
  const streams = useContext(StreamsContext);
  const follow = useCallback((tell: () => void) => streams?.follow(ev.id, tell) ?? (() => {}), [streams, ev.id]);
  return useSyncExternalStore(follow, () => (ev.status === "streaming" && streams?.event(ev.id)?.content) || ev.content);
}
