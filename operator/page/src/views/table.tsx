/**
 * Lists the views of the web UI: what draws a route, and the entries of the navigation.
 *
 * To add a view: add its route to logic/route.ts, its component to this folder, and its row to VIEW_TABLE, which does not
 * compile without it. A view in the navigation has an entry in NAVIGATION, too. Add its states to fixtures/.
 */
import { lazy, type ReactNode } from "react";
import type { Route } from "../logic/route";
import { Empty } from "../parts/parts";
import { ACTIONS, EMPTY, VIEWS } from "../words";
import { InvestigationPage } from "./Investigation";
import { List } from "./List";

const ApprovalPage = lazy(() => import("./Approval"));
const Approvals = lazy(() => import("./Approvals"));
const ComparePage = lazy(() => import("./Compare"));
const Reviews = lazy(() => import("./Reviews"));
const Submit = lazy(() => import("./Submit"));
const SuitePage = lazy(() => import("./Suite"));
const Suites = lazy(() => import("./Suites"));
const System = lazy(() => import("./System"));
const TracePage = lazy(() => import("./Trace"));
const UsagePage = lazy(() => import("./Usage"));

type View<Name extends Route["view"]> = {
  /** The entry of the navigation that is marked while the view is open; null: none. */
  under: Entry | null;
  draw: (route: Extract<Route, { view: Name }>) => ReactNode;
};

type Entry = "investigations" | "approvals" | "reviews" | "submit" | "suites" | "system" | "usage";

/** Entries of the navigation, in order. */
export const NAVIGATION: readonly { entry: Entry; link: string; words: string }[] = [
  { entry: "investigations", link: "#/investigations", words: VIEWS.investigations },
  { entry: "approvals", link: "#/approvals", words: VIEWS.approvals },
  { entry: "reviews", link: "#/reviews", words: VIEWS.reviews },
  { entry: "submit", link: "#/submit", words: ACTIONS.submit },
  { entry: "suites", link: "#/suites", words: VIEWS.suites },
  { entry: "system", link: "#/system", words: VIEWS.system },
  { entry: "usage", link: "#/usage", words: VIEWS.usage },
];

// The key of a view discards its state when another object is shown.
const VIEW_TABLE: { [Name in Route["view"]]: View<Name> } = {
  list: { under: "investigations", draw: (route) => <List query={route.query} /> },
  investigation: {
    under: "investigations",
    draw: ({ namespace, name, event, quote }) => <InvestigationPage key={`${namespace}/${name}`} namespace={namespace} name={name} event={event} quote={quote} />,
  },
  trace: {
    under: "investigations",
    draw: ({ namespace, name, call }) => <TracePage key={`${namespace}/${name}`} namespace={namespace} name={name} call={call} />,
  },
  compare: { under: "investigations", draw: ({ namespace, first, second }) => <ComparePage namespace={namespace} first={first} second={second} /> },
  approvals: { under: "approvals", draw: () => <Approvals /> },
  approval: { under: "approvals", draw: ({ namespace, name }) => <ApprovalPage key={`${namespace}/${name}`} namespace={namespace} name={name} /> },
  reviews: { under: "reviews", draw: ({ state }) => <Reviews key={state} state={state} /> },
  submit: { under: "submit", draw: () => <Submit /> },
  suites: { under: "suites", draw: () => <Suites /> },
  suite: {
    under: "suites",
    draw: ({ namespace, name, run, kase }) => <SuitePage key={`${namespace}/${name}`} namespace={namespace} name={name} run={run} kase={kase} />,
  },
  system: { under: "system", draw: ({ query }) => <System query={query} /> },
  usage: { under: "usage", draw: ({ by, days, show }) => <UsagePage by={by} days={days} show={show} /> },
  "sign-in": { under: null, draw: () => <Empty>{EMPTY.signedIn} <a href="#/investigations">{ACTIONS.showInvestigations}</a></Empty> },
  nowhere: { under: null, draw: () => <Empty>{EMPTY.noView} <a href="#/investigations">{ACTIONS.showInvestigations}</a></Empty> },
};

export function entryOf(route: Route): Entry | null {
  return VIEW_TABLE[route.view].under;
}

export function drawn(route: Route): ReactNode {
  // A row takes the route of its own name, which the type of an indexed table cannot tell.
  return (VIEW_TABLE[route.view] as View<Route["view"]>).draw(route as never);
}
