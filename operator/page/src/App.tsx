/** Signs in, draws the frame of the web UI, and selects the view. */
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get, onSignedOut, Refused, signInByCode, signOut } from "./api/client";
import { openLive } from "./api/live";
import type { Namespaces, Session } from "./api/types";
import { applyTheme, isDark, savedTheme } from "./logic/theme";
import type { Command } from "./logic/commands";
import { savedNamespace, saveNamespace } from "./logic/questions";
import { traceLink, type Route } from "./logic/route";
import { savedZone, saveZone, type Zone } from "./logic/zone";
import { go, useRoute, useStanding, WorldContext, type World } from "./parts/context";
import { useFollowNotices } from "./parts/Follows";
import { Connection, NewVersion } from "./parts/Notices";
import { Overlays, type Overlay } from "./parts/Overlays";
import { Printing, usePrinting } from "./parts/printing";
import { Problem } from "./parts/parts";
import { SignIn } from "./views/SignIn";
import { drawn, entryOf, NAVIGATION } from "./views/table";
import { ACTIONS, OPTIONS, PALETTE, PROBLEMS } from "./words";

const SHORTCUT = /Mac/.test(navigator.userAgent) ? "⌘ K" : "Ctrl K";

type Who = { kind: "asking" } | { kind: "nobody"; why: string } | { kind: "away"; error: Refused } | Known;
type Known = { kind: "known"; session: Session; namespaces: Namespaces };

export function App() {
  const [who, setWho] = useState<Who>({ kind: "asking" });
  const route = useRoute();
  const code = route.view === "sign-in" ? route.code : null;
  const next = route.view === "sign-in" ? route.next : null;

  const ask = useCallback(async (why = "") => {
    try {
      const [session, namespaces] = await Promise.all([get<Session>("/session"), get<Namespaces>("/namespaces")]);
      setWho({ kind: "known", session, namespaces });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setWho(error.status === 401 ? { kind: "nobody", why } : { kind: "away", error });
    }
  }, []);

  useEffect(() => {
    onSignedOut(() =>
      setWho((now) => {
        if (now.kind !== "known") return now;
        if (now.session.byProxy) location.reload(); // the proxy signs in again
        return { kind: "nobody", why: PROBLEMS.sessionEnded };
      }),
    );
    if (code === null) void ask();
    // Runs once: a code in the URL is redeemed below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  // Also redeems a link that is pasted into an open tab, which only changes the fragment.
  const redeemed = useRef<string | null>(null);
  useEffect(() => {
    if (code === null || redeemed.current === code) return;
    redeemed.current = code;
    setWho({ kind: "asking" });
    void signInByCode(code)
      .then(
        () => "",
        (error: Error) => error.message,
      )
      .then((why) => {
        redeemed.current = null; // pasting the link again shows the server's error
        go(`#${next ?? "/"}`, true); // removes the used code from the URL
        void ask(why);
      });
  }, [code, next, ask]);

  switch (who.kind) {
    case "asking":
      return <main className="alone" aria-busy="true" />;
    case "nobody":
      return <SignIn why={who.why} onSignedIn={() => void ask()} />;
    case "away":
      return (
        <main className="alone">
          <h1>TARSy</h1>
          <Problem error={who.error} />
          <button type="button" onClick={() => void ask()}>
            {ACTIONS.tryAgain}
          </button>
        </main>
      );
    case "known":
      return <Shell who={who} route={route} onSignOut={() => setWho({ kind: "nobody", why: PROBLEMS.signedOut })} />;
  }
}

function Shell({ who, route, onSignOut }: { who: Known; route: Route; onSignOut: () => void }) {
  const [namespace, setNamespace] = useState(() => savedNamespace(who.namespaces));
  const [theme, setTheme] = useState(savedTheme);
  const live = useMemo(openLive, []);
  useEffect(() => () => live.close(), [live]);
  const world: World = useMemo(
    () => ({ session: who.session, namespaces: who.namespaces, namespace, live }),
    [who, namespace, live],
  );
  const standing = useStanding(live);
  useFollowNotices();
  const printing = usePrinting();
  const choose = (name: string) => {
    saveNamespace(name);
    setNamespace(name);
  };
  const leave = async () => {
    await signOut();
    onSignOut();
  };
  const [zone, setZone] = useState(savedZone);
  const [overlay, setOverlay] = useState<Overlay>(null);
  const dark = isDark(theme);
  const views = useRef<HTMLElement>(null);
  // In a narrow window the links are one row that scrolls.
  useEffect(() => {
    const current = views.current?.querySelector<HTMLElement>("[aria-current]");
    if (views.current && current) views.current.scrollLeft = current.offsetLeft + current.offsetWidth / 2 - views.current.clientWidth / 2;
  }, [entryOf(route)]);
  const turnZone = (wanted: Zone) => {
    saveZone(wanted);
    setZone(wanted);
  };
  const turn = () => {
    const wanted = dark ? "light" : "dark";
    applyTheme(wanted);
    setTheme(wanted);
  };
  const commands = useMemo(
    (): Command[] => [
      ...NAVIGATION.map(({ entry, link, words }) => ({ id: entry, group: PALETTE.views, name: words, act: link })),
      ...(route.view === "investigation" ? [{ id: "trace", group: PALETTE.actions, name: ACTIONS.showTrace, act: traceLink(route.namespace, route.name) }] : []),
      { id: "theme", group: PALETTE.actions, name: ACTIONS.switchTheme, act: turn },
      { id: "zone", group: PALETTE.actions, name: ACTIONS.switchZone, act: () => turnZone(zone === "utc" ? "local" : "utc") },
      { id: "keys", group: PALETTE.actions, name: ACTIONS.showKeys, act: () => setOverlay("keys") },
      ...(who.session.byProxy ? [] : [{ id: "leave", group: PALETTE.actions, name: ACTIONS.signOut, act: () => void leave() }]),
    ],
    [route, zone, dark, who],
  );
  return (
    <Printing value={printing}>
    <WorldContext value={world}>
      <a className="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        {ACTIONS.skip}
      </a>
      <header className="top">
        <a className="brand" href="#/investigations">
          <span className="mark" aria-hidden="true">T</span> <span className="brand-name">TARSy</span>
        </a>
        <nav aria-label="Views" ref={views}>
          {NAVIGATION.map(({ entry, link, words }) => (
            <a key={entry} href={link} aria-current={entry === entryOf(route) ? "page" : undefined}>{words}</a>
          ))}
        </nav>
        <div className="top-side">
          <Connection standing={standing} />
          <select aria-label="Namespace" value={namespace} onChange={(event) => choose(event.target.value)}>
            <option value="">{OPTIONS.allNamespaces}</option>
            {who.namespaces.items.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <button type="button" className="quiet icon keys" aria-keyshortcuts="Control+K Meta+K" title={PALETTE.placeholder} onClick={() => setOverlay("palette")}>
            <span className="visually-hidden">{PALETTE.title} </span><kbd>{SHORTCUT}</kbd>
          </button>
          <button type="button" className="quiet icon" aria-pressed={zone === "utc"} onClick={() => turnZone(zone === "utc" ? "local" : "utc")} title="Time zone of all times">
            {zone === "utc" ? OPTIONS.utc : OPTIONS.local}
          </button>
          <button type="button" className="quiet icon" onClick={turn} aria-label={dark ? "Switch to light theme" : "Switch to dark theme"}>
            {dark ? "☀" : "☾"}
          </button>
          {who.session.byProxy ? (
            <span className="hint who" title="Signed in by a proxy">{who.session.username}</span>
          ) : (
            <button type="button" className="quiet" onClick={() => void leave()} title={who.session.username}>
              {ACTIONS.signOut}
            </button>
          )}
        </div>
      </header>
      <NewVersion standing={standing} />
      <Overlays open={overlay} commands={commands} onOpen={setOverlay} />
      <main id="main" tabIndex={-1} key={zone}>
        <Suspense fallback={<div className="view" aria-busy="true" />}>
          {drawn(route)}
        </Suspense>
      </main>
    </WorldContext>
    </Printing>
  );
}
