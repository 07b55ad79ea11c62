/** Lists investigations: what waits and runs, then what has finished. The live connection keeps the list current. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { Item, ItemList, ServerMessage } from "../api/types";
import { counted } from "../logic/format";
import { merged } from "../logic/items";
import { activeQuestion, isApart, LIMIT, listQuestion, pageQuestion, showsUnstarted } from "../logic/questions";
import { listLink, type ListQuery } from "../logic/route";
import { ACTIVE, FINISHED, isFinished } from "../logic/timeline";
import { go, scope, useGet, useKeys, useNow, useTitle, useWorld } from "../parts/context";
import { ListFilters, SortSelect } from "../parts/ListFilters";
import { FlawCounts } from "../parts/Flaws";
import { Empty, Problem } from "../parts/parts";
import { RunTable } from "../parts/RunTable";
import { UnstartedList } from "../parts/Unstarted";
import { ACTIONS, EMPTY, SECTIONS, VIEWS } from "../words";

const MOST_COUNTED = 1000;

export function List({ query }: { query: ListQuery }) {
  useTitle(VIEWS.investigations);
  const world = useWorld();
  const namespaces = scope(world);
  const asked = JSON.stringify(listQuestion(query, namespaces));
  const apart = isApart(query);
  const [pages, setPages] = useState<{ asked: string; tokens: string[] }>({ asked, tokens: [] });
  const tokensBefore = pages.asked === asked ? pages.tokens : [];
  const token = tokensBefore.at(-1);
  const running = useGet<ItemList>(apart && !token ? "/investigations" : null, activeQuestion(query, namespaces));
  const page = useGet<ItemList>("/investigations", pageQuestion(query, namespaces, token));
  const [changes, setChanges] = useState<ReadonlyMap<string, Item>>(new Map());
  const search = useRef<HTMLInputElement>(null);

  const channels = namespaces.length === 0 ? ["investigations"] : namespaces.map((name) => `investigations:${name}`);
  useEffect(() => {
    const onMessages = (messages: ServerMessage[]) =>
      setChanges((before) => {
        const after = new Map(before);
        for (const message of messages) if (message.type === "investigations.changed") after.set(message.item.uid, message.item);
        return after;
      });
    const ends = channels.map((channel) => world.live.follow(channel, { onMessages }));
    return () => ends.forEach((end) => end());
  }, [channels.join(), world.live]);
  useEffect(() => setChanges(new Map()), [asked, token]);

  const active = useMemo(
    () => merged(running.value?.items ?? [], changes, { query, first: apart && !token, limit: LIMIT, states: ACTIVE }),
    [running.value, changes, query, token, apart],
  );
  // New items appear on the first page of an unfiltered list, newest first; otherwise behind a button.
  const items = useMemo(() => {
    // What has finished since the lists were read moves from the one to the other.
    const moved = apart ? (running.value?.items ?? []).filter((item) => changes.has(item.uid)) : [];
    const before = [...moved, ...(page.value?.items ?? [])];
    return merged(before, changes, { query, first: !token, limit: LIMIT, ...(apart ? { states: FINISHED } : {}) });
  }, [page.value, running.value, changes, query, token, apart]);
  const shownActive = apart && !token ? active.shown : [];
  const now = useNow([...shownActive, ...items.shown].some((item) => !isFinished(item.state)));
  useListKeys(search);

  const set = (changed: ListQuery) => go(listLink({ ...query, ...changed }), true);
  const powerless = world.namespaces.items.length === 0 && !world.namespaces.everywhere;
  const filtered = !showsUnstarted(query);
  const newest = (query.sort ?? "newest") === "newest";
  const waiting = items.waiting + (apart ? active.waiting : 0);
  const none = page.value !== null && items.shown.length === 0 && shownActive.length === 0;
  return (
    <div className="view wide listing">
      <div className="title-row">
        <h1>{VIEWS.investigations}</h1>
        <span className="hint keys">
          <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> open, <kbd>/</kbd> search, <kbd>?</kbd> all keys
        </span>
        <span className="spring" />
        {filtered && <a href="#/investigations">{ACTIONS.clear}</a>}
        <SortSelect query={query} onChange={set} />
      </div>
      <ListFilters query={query} search={search} onChange={set} />
      {(page.error ?? running.error) && <Problem error={(page.error ?? running.error) as Error} />}
      {powerless && (
        <Empty>{EMPTY.noPermission}</Empty>
      )}
      {!filtered && !token && !powerless && <UnstartedList namespaces={namespaces} />}
      {waiting > 0 && (
        <button type="button" className="news" onClick={() => (setChanges(new Map()), page.again(), running.again())}>
          {counted(waiting, "changed")}
        </button>
      )}
      {shownActive.length > 0 && (
        <section aria-label={SECTIONS.active}>
          <h2 className="list-title">{SECTIONS.active} <Count count={Math.max(running.value?.count ?? 0, shownActive.length)} /></h2>
          <RunTable items={shownActive} now={now} query={query} grouped={false} onSort={null} />
        </section>
      )}
      {items.shown.length > 0 && (
        <section aria-label={apart ? SECTIONS.finished : SECTIONS.found}>
          <div className="list-head"><h2 className="list-title">{apart ? SECTIONS.finished : SECTIONS.found} {typeof page.value?.count === "number" && <Count count={Math.max(page.value.count, items.shown.length)} />}</h2>
          <FlawCounts counts={page.value?.flaws ?? {}} query={query} /></div>
          <RunTable items={items.shown} now={now} query={query} grouped={newest && !query.search} onSort={(sort) => set({ sort })} />
        </section>
      )}
      {page.loading && items.shown.length === 0 && <Empty>{EMPTY.loading}</Empty>}
      {none && !powerless && (
        <Empty>{filtered ? EMPTY.noMatch : EMPTY.noInvestigations}</Empty>
      )}
      <div className="pager">
        {tokensBefore.length > 0 && (
          <button type="button" onClick={() => setPages({ asked, tokens: tokensBefore.slice(0, -1) })}>{ACTIONS.previousPage}</button>
        )}
        {page.value?.continue && (
          <button type="button" onClick={() => setPages({ asked, tokens: [...tokensBefore, page.value?.continue ?? ""] })}>
            {ACTIONS.nextPage}
          </button>
        )}
      </div>
    </div>
  );
}

function Count({ count }: { count: number }) {
  return <span className="hint">{count >= MOST_COUNTED ? `${MOST_COUNTED.toLocaleString("en")}+` : count}</span>;
}

/** Moves through the rows by keys, and goes to the search. */
function useListKeys(search: React.RefObject<HTMLInputElement | null>) {
  useKeys((event) => {
    const links = [...document.querySelectorAll<HTMLElement>(".runs a.row-link")];
    const at = links.findIndex((link) => link === document.activeElement);
    if (event.key === "/") {
      event.preventDefault();
      search.current?.focus();
    } else if (event.key === "j") links[Math.min(links.length - 1, at + 1)]?.focus();
    else if (event.key === "k") links[Math.max(0, at - 1)]?.focus();
    else if (event.key === "Enter" && at < 0 && document.activeElement === document.body) links[0]?.click();
  });
}
