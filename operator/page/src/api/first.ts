/**
 * Sends the requests of the first view while the program of the web UI still loads.
 *
 * Decision: only an answered session sends those of the view, so nobody who must sign in first causes refusals; a
 * sign-in link sends none at all, because it is redeemed first.
 */
import { activeQuestion, isApart, pageQuestion, savedNamespace, scopeOf, showsUnstarted, unstartedQuestion } from "../logic/questions";
import { parse, type ListQuery } from "../logic/route";
import { firstEvents, pathOf, urlOf } from "./client";
import { startEarly } from "./early";
import type { Namespaces } from "./types";

/** Sends the requests of the view of a fragment (`#...`); returns when all are sent. */
export async function requestFirst(hash: string): Promise<void> {
  const route = parse(hash);
  if (route.view === "sign-in") return;
  const session = startEarly(urlOf("/session"));
  const namespaces = startEarly(urlOf("/namespaces"));
  try {
    if (!(await session).ok) return;
    if (route.view === "investigation") {
      startEarly(urlOf(pathOf(route.namespace, route.name))); // nothing is drawn without it
      startEarly(urlOf(...firstEvents(route.namespace, route.name)));
    }
    const answer = await namespaces;
    if (route.view === "list" && answer.ok) requestList(route.query, (await answer.clone().json()) as Namespaces);
  } catch {
    // whoever takes the response tells what went wrong
  }
}

function requestList(query: ListQuery, namespaces: Namespaces): void {
  const scope = scopeOf(namespaces, savedNamespace(namespaces));
  startEarly(urlOf("/investigations", pageQuestion(query, scope)));
  if (isApart(query)) startEarly(urlOf("/investigations", activeQuestion(query, scope)));
  if (showsUnstarted(query)) startEarly(urlOf("/unstarted", unstartedQuestion(scope)));
}
