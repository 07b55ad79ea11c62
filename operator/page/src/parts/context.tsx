/** Provides what all views share: session, namespaces, routing, requests and the live connection. */
import { createContext, useContext, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { get, Refused, type Query } from "../api/client";
import type { Live, Standing } from "../api/live";
import type { Namespaces, Session } from "../api/types";
import { scopeOf } from "../logic/questions";
import { parse, type Route } from "../logic/route";

export type World = {
  session: Session;
  namespaces: Namespaces;
  /** The selected namespace; empty: all permitted ones. */
  namespace: string;
  live: Live;
};

export const WorldContext = createContext<World | null>(null);

export function useWorld(): World {
  const world = useContext(WorldContext);
  if (!world) throw new Error("useWorld requires a WorldContext");
  return world;
}

/** Returns the namespaces for a list request; empty: all namespaces. */
export function scope(world: World): string[] {
  return scopeOf(world.namespaces, world.namespace);
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(
    (changed) => {
      addEventListener("hashchange", changed);
      return () => removeEventListener("hashchange", changed);
    },
    () => location.hash,
  );
  return parse(hash);
}

export function go(link: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", link);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = link.slice(1);
}

export type Loaded<T> = { value: T | null; error: Refused | null; loading: boolean; again: () => void };

/** Sends a GET request; repeats it when path or query change, and every `seconds` if set. */
export function useGet<T>(path: string | null, query: Query = {}, seconds?: number): Loaded<T> {
  const question = path === null ? null : JSON.stringify([path, query]);
  const [found, setFound] = useState<{ question: string | null; value: T | null; error: Refused | null }>({
    question: null,
    value: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (question === null) return;
    const [asked, parameters] = JSON.parse(question) as [string, Query];
    const abort = new AbortController();
    get<T>(asked, parameters, abort.signal).then(
      (value) => setFound({ question, value, error: null }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const refused = error instanceof Refused ? error : new Refused(0, "Error", String(error));
        setFound((before) => ({ question, value: before.question === question ? before.value : null, error: refused }));
      },
    );
    return () => abort.abort();
  }, [question, turn]);
  useEffect(() => {
    if (!seconds) return;
    const timer = setInterval(() => document.hidden || setTurn((turn) => turn + 1), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  const current = found.question === question;
  return {
    value: current ? found.value : null,
    error: current ? found.error : null,
    loading: question !== null && !current,
    again: () => setTurn((turn) => turn + 1),
  };
}

/** Returns the current time, updated every second while `running`. */
export function useNow(running: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!running) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}

export function useStanding(live: Live): Standing {
  const [standing, setStanding] = useState<Standing>(live.standing);
  useEffect(() => live.watch(setStanding), [live]);
  return standing;
}

/** Handles keys of the whole view, except while typing in a field. */
export function useKeys(act: (event: KeyboardEvent) => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey) return;
      if (document.querySelector("dialog[open]")) return;
      const at = event.target;
      if (at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName))) return;
      latest.current(event);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · TARSy`;
  }, [title]);
}
