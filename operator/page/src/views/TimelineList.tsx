/** Renders the visible part of the timeline, and follows its end while the reader is there. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { stageHolding, summaryOf, withoutClosed } from "../logic/folds";
import { counted } from "../logic/format";
import { holds, rowsOf, type Ev, type Row, type Timeline } from "../logic/timeline";
import { useKeys } from "../parts/context";
import { EventRow } from "../parts/EventRow";
import { usePrinted } from "../parts/printing";
import { StageHead } from "../parts/StageHead";
import { ACTIONS, SECTIONS } from "../words";

type Props = { timeline: Timeline; event: string | null; quote: string | null; finished: boolean; link: (id: string) => string; toStage: { stage: string } | null };
const NEAR = 160;
const MARGIN = 64;
/** Agents that are shown side by side, in a window of at least this width. */
const LANES = 4;
const WIDE = 1000;

export function TimelineList({ timeline, event, quote, finished, link, toStage }: Props) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>(new Map());
  const [search, setSearch] = useState("");
  const printed = usePrinted();
  const lanes = finished && innerWidth >= WIDE && !printed ? LANES : 0;
  // On paper, all agents are shown.
  const rows = useMemo(() => rowsOf(timeline, printed ? new Map() : chosen, lanes), [timeline, chosen, lanes, printed]);
  const { isFolded, turn, turnAll, allOpen } = useFolds(finished, event);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  // A search looks into folded stages, too.
  const shown = useMemo(() => (search.trim() ? matching(rows, search) : withoutClosed(rows, closed)), [rows, search, closed]);
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const now = list.current ? list.current.getBoundingClientRect().top + scrollY : 0;
    if (Math.abs(now - top) > 1) setTop(now);
  });
  const virtual = useWindowVirtualizer({
    count: shown.length,
    estimateSize: (place) => (shown[place]?.kind === "stage" ? 44 : finished ? 34 : 120),
    getItemKey: (place) => shown[place]?.key ?? place,
    overscan: 6,
    scrollMargin: top,
  });

  const [following, setFollowing] = useState(!finished && !event);
  // Events that arrived since the reader stopped following.
  const [seen, setSeen] = useState(timeline.order.length);
  useEffect(() => {
    if (following) setSeen(timeline.order.length);
  }, [following, timeline.order.length]);
  const fresh = timeline.order.length - seen;
  const streamed = timeline.events;
  const height = virtual.getTotalSize(); // grows when rows are measured
  useEffect(() => {
    if (following && !finished) scrollTo({ top: scrollY + below(list.current) });
  }, [streamed, following, finished, height, top]);
  useEffect(() => {
    // Scrolling up stops following.
    let before = scrollY;
    const scrolled = () => {
      const end = below(list.current) < NEAR;
      if (scrollY < before - 4 && !end) setFollowing(false);
      before = scrollY;
    };
    addEventListener("scroll", scrolled, { passive: true });
    return () => removeEventListener("scroll", scrolled);
  }, []);

  useEffect(() => {
    const place = toStage ? shown.findIndex((row) => row.kind === "stage" && row.stage === toStage.stage) : -1;
    if (place >= 0) {
      setFollowing(false);
      virtual.scrollToIndex(place, { align: "start" });
    }
  }, [toStage]);

  const there = event ? shown.findIndex((row) => holds(row, event)) : -1;
  const shownEvent = useRef<string | null>(null);
  useEffect(() => {
    if (!event || shownEvent.current === event) return;
    if (there >= 0) {
      shownEvent.current = event;
      setFollowing(false);
      virtual.scrollToIndex(there, { align: "center" });
    } else if (timeline.events.has(event)) {
      const stage = stageHolding(rows, event);
      if (stage !== null && closed.has(stage)) setClosed((before) => toggled(before, stage));
      setSearch(""); // the event is in another tab, or filtered out
      setChosen(new Map());
    }
  }, [event, there, virtual, timeline]);

  useKeys((event) => {
    if (event.key === "f" && !finished) setFollowing(!following);
    if (event.key === "o" && finished) turnAll();
  });

  const eventRow = (ev: Ev) => (
    <EventRow ev={ev} chosen={ev.id === event} quote={ev.id === event && !printed ? quote : null} link={link(ev.id)} {...(finished ? { folded: isFolded(ev.id), onFold: () => turn(ev.id) } : {})} />
  );
  const shownRow = (row: Row) => {
    if (row.kind === "stage") {
      const summary = finished && !printed ? (closed.has(row.stage) ? summaryOf(rows, row.stage) : null) : undefined;
      return <StageHead row={row} summary={summary} onFold={() => setClosed((before) => toggled(before, row.stage))} onAgent={(execution) => setChosen((before) => with_(before, row.stage, execution))} />;
    }
    if (row.kind === "event") return eventRow(row.ev);
    return <div className="lanes">{row.events.map((ev, place) => <div key={ev?.id ?? place}>{ev && eventRow(ev)}</div>)}</div>;
  };

  return (
    <>
      <div className="timeline-bar">
        <h2>{SECTIONS.timeline}</h2>
        <span className="hint">{counted(timeline.order.length, "events")}</span>
        <span className="spring" />
        {finished && <button type="button" className="quiet" onClick={turnAll}>{allOpen ? ACTIONS.foldAll : ACTIONS.openAll}</button>}
        <input type="search" aria-label="Search in the timeline" placeholder="Search events" value={search} onChange={(event) => setSearch(event.target.value)} />
      </div>
      {printed ? (
        <div className="printed">
          {rows.map((row) => <div key={row.key} className="row">{shownRow(row)}</div>)}
        </div>
      ) : (
        <div ref={list} className="timeline" style={{ height }}>
          {virtual.getVirtualItems().map((item) => {
            const row = shown[item.index];
            if (!row) return null;
            return (
              <div key={item.key} ref={virtual.measureElement} data-index={item.index} className="row" style={{ transform: `translateY(${item.start - top}px)` }}>
                {shownRow(row)}
              </div>
            );
          })}
        </div>
      )}
      {!finished && (
        <div className="follow-bar">
          {following ? (
            <button type="button" onClick={() => setFollowing(false)}>{ACTIONS.pause}</button>
          ) : (
            <button type="button" className="primary" onClick={() => setFollowing(true)}>{fresh > 0 ? counted(fresh, "fresh") : ACTIONS.follow}</button>
          )}
        </div>
      )}
    </>
  );
}

/** Remembers which events are open; those of a finished run are folded until they are opened, or followed by a link. */
function useFolds(finished: boolean, event: string | null) {
  const [allOpen, setAllOpen] = useState(false);
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [closed, setClosed] = useState<string | null>(null);
  const isFolded = (id: string) => finished && (id === event && id !== closed ? false : turned.has(id) === allOpen);
  const turn = (id: string) => {
    if (id === event && id !== closed) {
      setClosed(id);
      if (turned.has(id) !== allOpen) setTurned((before) => toggled(before, id));
      return;
    }
    setTurned((before) => toggled(before, id));
  };
  const turnAll = () => {
    setTurned(new Set());
    setClosed(null);
    setAllOpen(!allOpen);
  };
  useEffect(() => setClosed(null), [event]);
  return { isFolded, turn, turnAll, allOpen };
}

function toggled(before: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const after = new Set(before);
  if (!after.delete(id)) after.add(id);
  return after;
}

/** Returns how far the end of the timeline is below the window, in pixels. Other sections may follow in narrow windows. */
function below(list: HTMLElement | null): number {
  return list ? list.getBoundingClientRect().bottom + MARGIN - innerHeight : 0;
}

function with_(before: ReadonlyMap<string, string>, stage: string, execution: string | null): ReadonlyMap<string, string> {
  const after = new Map(before);
  if (execution === null) after.delete(stage);
  else after.set(stage, execution);
  return after;
}

function matching(rows: readonly Row[], search: string): readonly Row[] {
  const wanted = search.trim().toLowerCase();
  if (!wanted) return rows;
  return rows.filter((row) => {
    if (row.kind === "stage") return row.name.toLowerCase().includes(wanted);
    const events = row.kind === "lanes" ? row.events : [row.ev];
    return events.some((ev) => ev && `${ev.content} ${String(ev.metadata["name"] ?? "")} ${String(ev.metadata["arguments"] ?? "")} ${ev.agent ?? ""}`.toLowerCase().includes(wanted));
  });
}
