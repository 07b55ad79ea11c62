/** Selects what the list of investigations shows: text, phase, flaw, severity, outcome, alert type, chain, author and time. */
import { useEffect, useRef, useState } from "react";
import { FIRST, fromField, LAST, toField } from "../logic/moments";
import { FILTERS, SORTS, type ListQuery } from "../logic/route";
import { ACTIONS, FLAWS, OPTIONS, OUTCOMES, PERIODS, PHASES, SEVERITIES, SORT } from "../words";

type Props = { query: ListQuery; search: React.RefObject<HTMLInputElement | null>; onChange: (changed: ListQuery) => void };

export function ListFilters({ query, search, onChange }: Props) {
  // In a narrow window, all but the search stand behind a button.
  const [open, setOpen] = useState(false);
  const set = FILTERS.filter((name) => name !== "search" && query[name]).length;
  return (
    <form className={open ? "filters" : "filters folded"} role="search" onSubmit={(event) => event.preventDefault()}>
      <Search value={query.search ?? ""} input={search} onSearch={(text) => onChange({ search: text })} />
      <button type="button" className="more-filters" aria-expanded={open} onClick={() => setOpen(!open)}>{ACTIONS.filters}{set > 0 && ` (${set})`}</button>
      <select aria-label="Search in" value={query.searchIn ?? ""} onChange={(event) => onChange({ searchIn: event.target.value })}>
        <option value="">{OPTIONS.searchSummaries}</option>
        <option value="timeline">{OPTIONS.searchTimelines}</option>
      </select>
      <select aria-label="Phase" value={query.state ?? ""} onChange={(event) => onChange({ state: event.target.value })}>
        <option value="">{OPTIONS.anyPhase}</option>
        {Object.entries(PHASES).map(([state, name]) => state !== "concluding" && <option key={state} value={state}>{name}</option>)}
      </select>
      <select aria-label="Flaw" value={query.flaw ?? ""} onChange={(event) => onChange({ flaw: event.target.value })}>
        <option value="">{OPTIONS.flawsOrNot}</option>
        <option value="any">{OPTIONS.anyFlaw}</option>
        {Object.entries(FLAWS).map(([flaw, { name }]) => <option key={flaw} value={flaw}>{name}</option>)}
      </select>
      <select aria-label="Severity" value={query.severity ?? ""} onChange={(event) => onChange({ severity: event.target.value })}>
        <option value="">{OPTIONS.anySeverity}</option>
        {Object.entries(SEVERITIES).map(([severity, name]) => <option key={severity} value={severity}>{name}</option>)}
      </select>
      <select aria-label="Outcome" value={query.outcome ?? ""} onChange={(event) => onChange({ outcome: event.target.value })}>
        <option value="">{OPTIONS.anyOutcome}</option>
        {Object.entries(OUTCOMES).map(([outcome, { name }]) => <option key={outcome} value={outcome}>{name}</option>)}
      </select>
      <Filter label="Alert type" value={query.alertType} onChange={(alertType) => onChange({ alertType })} />
      <Filter label="Chain" value={query.chain} onChange={(chain) => onChange({ chain })} />
      <Filter label="Author" value={query.author} onChange={(author) => onChange({ author })} />
      <Span since={query.since} until={query.until} onChange={onChange} />
    </form>
  );
}

export function SortSelect({ query, onChange }: Omit<Props, "search">) {
  return (
    <select aria-label="Sort" value={query.sort ?? "newest"} onChange={(event) => onChange({ sort: event.target.value })}>
      {SORTS.map((sort) => (
        <option key={sort} value={sort}>{SORT[sort]}</option>
      ))}
    </select>
  );
}

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
