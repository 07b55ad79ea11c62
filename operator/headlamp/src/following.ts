/** Reads something again and again until it has ended, or the view is gone. */
import { useEffect, useState } from 'react';

export const SECONDS = 3;

export interface Followed<T> {
  found?: T;
  error?: unknown;
}

/**
 * Returns what was read last, and the error of the last reading.
 *
 * @param load reads it; gets what was read before.
 * @param over says whether nothing changes any more.
 * @param keys start it anew when one of them changes.
 */
export function useFollowed<T>(
  load: (before?: T) => Promise<T>,
  over: (found: T) => boolean,
  keys: readonly unknown[]
): Followed<T> {
  const [state, setState] = useState<Followed<T>>({});
  useEffect(() => {
    let gone = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let before: T | undefined;
    setState({});
    async function read() {
      try {
        before = await load(before);
        if (!gone) {
          setState({ found: before });
        }
      } catch (error) {
        if (!gone) {
          setState({ found: before, error });
        }
      }
      if (!gone && (before === undefined || !over(before))) {
        timer = setTimeout(read, SECONDS * 1000);
      }
    }
    void read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, keys);
  return state;
}
