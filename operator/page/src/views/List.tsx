/** Lists investigations with filters, sorting and paging; the live connection keeps the page current. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { ItemList, Item, ServerMessage } from "../api/types";
import { isFinished } from "../logic/timeline";
import { ago, author, between, cost, counted, moment, tokens } from "../logic/format";
import { merged } from "../logic/items";
import { FIRST, fromField, LAST, toField } from "../logic/moments";
import { FILTERS, investigationLink, listLink, SORTS, type ListQuery } from "../logic/route";
import { go, scope, useGet, useKeys, useNow, useTitle, useWorld } from "../parts/context";
import { Badge, Empty, Problem } from "../parts/parts";
import { UnstartedList } from "../parts/Unstarted";
import { ACTIONS, COLUMNS, EMPTY, OPTIONS, PERIODS, PHASES, SORT, VIEWS } from "../words";

const LIMIT = 50;

export function List({ query }: { query: ListQuery }) {
  useTitle(VIEWS.investigations);
  const world = useWorld();
  const namespaces = scope(world);
  const question = useMemo(() => ({ ...query, namespace: namespaces, limit: LIMIT }), [query, namespaces.join()]);
  const asked = JSON.stringify(question);
  const [pages, setPages] = useState<{ asked: string; tokens: string[] }>({ asked, tokens: [] });
  const tokensBefore = pages.asked === asked ? pages.tokens : [];
  const token = tokensBefore.at(-1);
  const page = useGet<ItemList>("/investigations", { ...question, continue: token });
  const [changes, setChanges] = useState<ReadonlyMap<string, Item>>(new Map());
  const [chosen, setChosen] = useState(0);
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
  useEffect(() => {
    setChanges(new Map());
    setChosen(0);
  }, [asked, token]);

  // New items appear on the first page of an unfiltered list, newest first; otherwise behind a button.
  const items = useMemo(
    () => merged(page.value?.items ?? [], changes, { query, first: !token, limit: LIMIT }),
    [page.value, changes, query, token],
  );
  const now = useNow(items.shown.some((item) => !isFinished(item.state)));

  useKeys((event) => {
    if (event.key === "/") {
      event.preventDefault();
      search.current?.focus();
    } else if (event.key === "j" || event.key === "k") {
      const next = Math.max(0, Math.min(items.shown.length - 1, chosen + (event.key === "j" ? 1 : -1)));
      setChosen(next);
      document.querySelectorAll<HTMLElement>("tbody tr a.row-link")[next]?.focus();
    } else if (event.key === "Enter" && !(event.target instanceof HTMLAnchorElement) && !(event.target instanceof HTMLButtonElement)) {
      const item = items.shown[chosen];
      if (item) go(investigationLink(item.namespace, item.name));
    }
  });

  const set = (changed: ListQuery) => go(listLink({ ...query, ...changed }), true);
  const powerless = world.namespaces.items.length === 0 && !world.namespaces.everywhere;
  const filtered = FILTERS.some((name) => query[name]);
  return (
    <div className="view wide">
      <div className="title-row">
        <h1>{VIEWS.investigations}</h1>
        <span className="hint keys">
          <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> open, <kbd>/</kbd> search
        </span>
      </div>
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Search value={query.search ?? ""} input={search} onSearch={(text) => set({ search: text })} />
        <select aria-label="Search in" value={query.searchIn ?? ""} onChange={(event) => set({ searchIn: event.target.value })}>
          <option value="">{OPTIONS.searchSummaries}</option>
          <option value="timeline">{OPTIONS.searchTimelines}</option>
        </select>
        <select aria-label="Phase" value={query.state ?? ""} onChange={(event) => set({ state: event.target.value })}>
          <option value="">{OPTIONS.anyPhase}</option>
          {Object.entries(PHASES).map(([state, name]) => state !== "concluding" && <option key={state} value={state}>{name}</option>)}
        </select>
        <Filter label="Alert type" value={query.alertType} onChange={(alertType) => set({ alertType })} />
        <Filter label="Chain" value={query.chain} onChange={(chain) => set({ chain })} />
        <Filter label="Author" value={query.author} onChange={(author) => set({ author })} />
        <Span since={query.since} until={query.until} onChange={set} />
        <select aria-label="Sort" value={query.sort ?? "newest"} onChange={(event) => set({ sort: event.target.value })}>
          {SORTS.map((sort) => (
            <option key={sort} value={sort}>{SORT[sort]}</option>
          ))}
        </select>
        {filtered && <a href="#/investigations">{ACTIONS.clear}</a>}
      </form>
      {page.error && <Problem error={page.error} />}
      {powerless && (
        <Empty>{EMPTY.noPermission}</Empty>
      )}
      {!filtered && !token && !powerless && <UnstartedList namespaces={namespaces} />}
      {items.waiting > 0 && (
        <button type="button" className="news" onClick={() => (setChanges(new Map()), page.again())}>
          {counted(items.waiting, "changed")}
        </button>
      )}
      {items.shown.length > 0 && <Table items={items.shown} now={now} chosen={chosen} />}
      {page.loading && items.shown.length === 0 && <Empty>{EMPTY.loading}</Empty>}
      {page.value && !powerless && items.shown.length === 0 && (
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

function Table({ items, now, chosen }: { items: readonly Item[]; now: number; chosen: number }) {
  return (
    <table className="list">
      <thead>
        <tr>
          <th scope="col">{COLUMNS.phase}</th>
          <th scope="col">{COLUMNS.investigation}</th>
          <th scope="col">{COLUMNS.finding}</th>
          <th scope="col" className="narrow-off">{COLUMNS.progress}</th>
          <th scope="col" className="narrow-off number">{COLUMNS.tokens}</th>
          <th scope="col" className="narrow-off number">{COLUMNS.cost}</th>
          <th scope="col" className="narrow-off number">{COLUMNS.duration}</th>
          <th scope="col" className="number">{COLUMNS.age}</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item, place) => (
          <tr key={item.uid} className={place === chosen ? "chosen" : ""}>
            <td data-label={COLUMNS.phase}><Badge state={item.state} desired={item.desiredState} /></td>
            <td data-label={COLUMNS.investigation} className="what">
              <a className="row-link" href={investigationLink(item.namespace, item.name)}>{item.alertType}</a>
              <span className="where">{item.namespace}/{item.name}</span>
              <span className="where">{item.chain}{item.author ? ` · ${author(item.author)}` : ""}</span>
            </td>
            <td data-label={COLUMNS.finding} className="finding-cell">
              {item.finding ? (
                <div className="clamp" title={item.finding.summary}>
                  <span className={`confidence c-${item.finding.confidence}`}>{item.finding.confidence}</span> {item.finding.summary}
                </div>
              ) : item.failure ? (
                <span className="bad">{item.failure.message}</span>
              ) : (
                <span className="hint">{isFinished(item.state) ? "–" : (item.progress.currentStage ?? "–")}</span>
              )}
            </td>
            <td data-label={COLUMNS.progress} className="narrow-off"><Progress item={item} /></td>
            <td data-label={COLUMNS.tokens} className="narrow-off number">{tokens(item.spent)}</td>
            <td data-label={COLUMNS.cost} className="narrow-off number">{cost(item.spent)}</td>
            <td data-label={COLUMNS.duration} className="narrow-off number">{between(item.startedAt, item.finishedAt, now)}</td>
            <td data-label={COLUMNS.age} className="number" title={moment(item.acceptedAt)}>{ago(item.acceptedAt, now)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Progress({ item }: { item: Item }) {
  const { stagesFinished, stagesPlanned } = item.progress;
  return (
    <span className="progress">
      <progress value={stagesFinished} max={Math.max(stagesPlanned, 1)} aria-label={`${stagesFinished} of ${stagesPlanned} stages`} />
      {stagesFinished}/{stagesPlanned}
    </span>
  );
}

/** Searches when typing pauses, or immediately with Enter. */
function Search({ value, input, onSearch }: { value: string; input: React.RefObject<HTMLInputElement | null>; onSearch: (text: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value || (text.length > 0 && text.trim().length < 3)) return;
    const timer = setTimeout(() => onSearch(text.trim()), 400);
    return () => clearTimeout(timer);
  });
  return (
    <input
      ref={input}
      type="search"
      aria-label="Search"
      placeholder="Search, at least 3 characters"
      value={text}
      maxLength={200}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (text.trim().length >= 3 || !text)) onSearch(text.trim());
        if (event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}

function Filter({ label, value, onChange }: { label: string; value: string | undefined; onChange: (value: string) => void }) {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const done = () => text.trim() !== (value ?? "") && onChange(text.trim());
  return (
    <input
      aria-label={label}
      placeholder={label}
      value={text}
      size={12}
      onChange={(event) => setText(event.target.value)}
      onBlur={done}
      onKeyDown={(event) => event.key === "Enter" && done()}
    />
  );
}

type SpanProps = { since: string | undefined; until: string | undefined; onChange: (changed: ListQuery) => void };

/** Filters by time of acceptance: a preset period, or a custom range. The URL contains both. */
function Span({ since, until, onChange }: SpanProps) {
  const [picking, setPicking] = useState(false);
  const own = picking || Boolean(since || until);
  return (
    <>
      <select
        aria-label="Accepted"
        value={own ? "own" : ""}
        onChange={(event) => {
          const asked = event.target.value;
          setPicking(asked === "own");
          if (asked === "own") return;
          const seconds = Number(asked);
          const start = seconds ? new Date(Math.floor(Date.now() / 1000 - seconds) * 1000).toISOString().replace(".000Z", "Z") : "";
          onChange({ since: start, until: "" });
        }}
      >
        <option value="">{OPTIONS.anyTime}</option>
        {Object.entries(PERIODS).map(([seconds, name]) => (
          <option key={seconds} value={seconds}>{name}</option>
        ))}
        <option value="own">{OPTIONS.customRange}</option>
      </select>
      {own && (
        <span className="between">
          <When label="Since" value={since} onChange={(moment) => onChange({ since: moment })} />
          <When label="Until" value={until} onChange={(moment) => onChange({ until: moment })} />
        </span>
      )}
    </>
  );
}

/** Applies a time as soon as it is complete; until then the browser owns the field. */
function When({ label, value, onChange }: { label: string; value: string | undefined; onChange: (moment: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const shown = toField(value);
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = shown;
  }, [shown]);
  return (
    <label className="when">
      {label}
      <input
        ref={input}
        type="datetime-local"
        min={FIRST}
        max={LAST}
        defaultValue={shown}
        onChange={(event) => {
          const { value: written, validity } = event.target;
          if (validity.valid && written !== shown) onChange(fromField(written));
        }}
      />
    </label>
  );
}
