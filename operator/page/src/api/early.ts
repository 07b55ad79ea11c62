/**
 * Keeps responses that were requested before the program had loaded, for the first request of the same URL.
 *
 * Decision: a response is taken once, and only for a few seconds, so nothing shows an old state. Whatever changes
 * something (a sign-in, too) discards them all: they were requested before it.
 */

/** Milliseconds for which a response waits to be taken. */
const FRESH = 10_000;

const waiting = new Map<string, { at: number; answer: Promise<Response> }>();

/** Requests a URL, for `takeEarly`. */
export function startEarly(url: string): Promise<Response> {
  const answer = fetch(url, { method: "GET", credentials: "same-origin" });
  answer.catch(() => {}); // whoever takes it handles the error
  waiting.set(url, { at: performance.now(), answer });
  return answer;
}

/** Returns the response of a URL if it was requested just before, and removes it. */
export function takeEarly(method: string, url: string): Promise<Response> | null {
  if (method !== "GET") waiting.clear();
  const found = waiting.get(url);
  waiting.delete(url);
  return found && performance.now() - found.at < FRESH ? found.answer : null;
}
