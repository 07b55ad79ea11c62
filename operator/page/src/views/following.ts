/** Follows one investigation: reads its past with REST, page by page, then subscribes over the live connection. */
import { useEffect, useState } from "react";
import { firstEvents, get, pathOf, Refused } from "../api/client";
import type { Live } from "../api/live";
import type { Events, ServerMessage } from "../api/types";
import { Streams } from "../logic/streams";
import { EMPTY, type Timeline } from "../logic/timeline";

/** Messages of each page after the first, which is shown at once. */
const PAGE = 1000;
/** Milliseconds between two renderings while further pages are read. */
const BETWEEN = 500;
/** Milliseconds to wait for a frame. */
const LATEST_FRAME = 200;

/** `timeline`: without the words that arrived since an event began or ended; `streams` has them. */
export type Following = { timeline: Timeline; streams: Streams; error: Refused | null; loading: boolean };

export function useFollowing(live: Live, namespace: string, name: string): Following {
  const [found, setFound] = useState<Following>(() => ({ timeline: EMPTY, streams: new Streams(), error: null, loading: true }));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const streams = new Streams();
    const channel = `investigation:${namespace}/${name}`;
    let end = () => {};
    let again: ReturnType<typeof setTimeout> | undefined;
    const take = (messages: readonly ServerMessage[], loading: boolean) => {
      if (!streams.take(messages) && !loading) return;
      const now = performance.now();
      if (loading && now - shownAt < BETWEEN) return;
      shownAt = now;
      setFound({ timeline: streams.timeline, streams, error: null, loading });
    };
    let shownAt = -BETWEEN;
    /** Reads all changes after a cursor; returns the cursor after the last one. */
    const past = async (after: string): Promise<string> => {
      const path = `${pathOf(namespace, name)}/events`;
      for (;;) {
        const first = after === "0";
        const [, query] = first ? firstEvents(namespace, name) : [path, { after, limit: PAGE }];
        const page = await get<Events>(path, query, abort.signal);
        after = page.id;
        take(page.items, page.more);
        if (!page.more) return after;
        if (first) await drawn(); // the next page would take the time that drawing this one needs
      }
    };
    const failed = (error: unknown) => {
      if (abort.signal.aborted) return;
      const refused = error instanceof Refused ? error : new Refused(0, "Error", String(error));
      setFound((before) => ({ ...before, error: refused, loading: false }));
      // No record yet, or the server is unavailable: try again.
      if (refused.status === 404 || refused.status === 0 || refused.status >= 500) again = setTimeout(() => setTurn((n) => n + 1), 2000);
    };
    const onMessages = (messages: ServerMessage[]) => {
      take(messages, false);
      const overflow = messages.find((message) => message.type === "overflow");
      if (overflow) past(overflow.after).then((after) => live.catchUp(channel, after), failed);
    };
    past("0").then((after) => {
      if (abort.signal.aborted) return;
      end = live.follow(
        channel,
        { onMessages, onRefused: (reason, message) => failed(new Refused(reason === "Forbidden" ? 403 : 404, reason, message)) },
        after,
      );
    }, failed);
    return () => {
      abort.abort();
      clearTimeout(again);
      end();
    };
  }, [live, namespace, name, turn]);
  return found;
}

/** Waits until a frame is drawn; a hidden tab draws none. */
function drawn(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LATEST_FRAME);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}
