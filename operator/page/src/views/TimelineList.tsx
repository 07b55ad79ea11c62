/** Renders the visible part of the timeline, and follows its end while the reader is there. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useContext, useDeferredValue, useEffect, useMemo, useRef, useState, type ReactNode, type RefObject } from "react";
import type { AgentStep } from "../logic/agentSteps";
import { stageHolding, summaryOf, withoutClosed } from "../logic/folds";
import { counted } from "../logic/format";
import { foldedRows, holdsEvent, type FoldedRow } from "../logic/stepRows";
import { rowsOf, type Ev, type Timeline } from "../logic/timeline";
import { useKeys, useNow } from "../parts/context";
import { EventRow } from "../parts/EventRow";
import { usePrinted } from "../parts/printing";
import { StageHead } from "../parts/StageHead";
import { AgentHead, StepRow } from "../parts/Steps";
import { StreamsContext } from "../parts/streamed";
import { ACTIONS, EMPTY, SECTIONS } from "../words";

type Props = { timeline: Timeline; event: string | null; quote: string | null; states: ReadonlyMap<string, string>; finished: boolean; loading: boolean; link: (id: string) => string; toStage: { stage: string } | null };
const NEAR = 160;
const MARGIN = 64;
/** Agents that are shown side by side, in a window of at least this width. */
const LANES = 4;
const WIDE = 1000;

export const TimelineList = memo(function TimelineList({ timeline, event, quote, states, finished, loading, link, toStage }: Props) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>(new Map());
  const [typed, setSearch] = useState("");
  const search = useDeferredValue(typed); // a key is shown before thousands of events are searched
  const printed = usePrinted();
  const lanes = finished && innerWidth >= WIDE && !printed ? LANES : 0;
  // On paper, all agents are shown.
  const searched = search.trim() !== "";
  const byStep = finished && !printed && !searched;
  const [closedAgents, setClosedAgents] = useState<ReadonlySet<string>>(new Set());
  const onAgentFold = useCallback((execution: string) => setClosedAgents((before) => toggled(before, execution)), []);
  const rows: readonly FoldedRow[] = useMemo(
    () => (byStep ? foldedRows(timeline, chosen, lanes, closedAgents) : rowsOf(timeline, printed ? new Map() : chosen, searched ? 0 : lanes)),
    [timeline, chosen, lanes, printed, byStep, searched, closedAgents],
  );
  const { isFolded, turn, turnAll, allOpen } = useFolds(finished, event);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const streams = useContext(StreamsContext);
  // A search looks into folded stages, too, and each second at the words that arrive.
  const turned = useNow(searched && !finished);
  const shown = useMemo(() => (searched ? matching(rows, search, streams?.timeline.events) : withoutClosed(rows, closed)), [rows, search, closed, turned]);
  // What is folded counts, too.
  const whole = useMemo(() => (closed.size > 0 ? rowsOf(timeline, chosen) : []), [timeline, chosen, closed]);
  const list = useRef<HTMLDivElement>(null);
  const top = useTop(list);
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
  const height = virtual.getTotalSize(); // grows when rows are measured
  const follows = following && !finished;
  useEffect(() => {
    const element = list.current;
    if (!follows || !element) return;
    // Observers are called at once and after layout, so that reading positions forces none.
    const watch = new ResizeObserver(() => scrollTo({ top: scrollY + below(element) }));
    watch.observe(element);
    return () => watch.disconnect();
  }, [follows, top, printed]);
  useEffect(() => {
    // Scrolling up stops following.
    let before = scrollY;
    const scrolled = () => {
      if (scrollY < before - 4 && below(list.current) >= NEAR) setFollowing(false);
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

  const there = event ? shown.findIndex((row) => holdsEvent(row, event)) : -1;
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
      setSearch(""); // the event is in another tab, filtered out, or of a folded agent
      setChosen(new Map());
      setClosedAgents(new Set());
    }
  }, [event, there, virtual, timeline]);

  useKeys((event) => {
    if (event.key === "f" && !finished) setFollowing(!following);
    if (event.key === "o" && finished) turnAll();
  });

  const eventRow = (ev: Ev, showAgent = true) => (
    <EventRow ev={ev} showAgent={showAgent} chosen={ev.id === event} quote={ev.id === event && !printed ? quote : null} link={link(ev.id)} {...(finished ? { folded: isFolded(ev.id), onFold: () => turn(ev.id) } : {})} />
  );
  const stepRow = (step: AgentStep) => {
    const [only] = step.events;
    if (only && step.events.length === 1) return eventRow(only, false);
    const id = `step ${step.key}`;
    const open = step.events.some((ev) => ev.id === event) ? !isFolded(id, event) : !isFolded(id);
    return (
      <StepRow step={step} open={open} onFold={() => turn(id, step.events.some((ev) => ev.id === event) ? event : null)}>
        {open && step.events.map((ev) => <EventRow key={ev.id} ev={ev} chosen={ev.id === event} quote={ev.id === event ? quote : null} link={link(ev.id)} showAgent={false} />)}
      </StepRow>
    );
  };
  const shownRow = (row: FoldedRow) => {
    if (row.kind === "stage") {
      const summary = finished && !printed ? (closed.has(row.stage) ? summaryOf(whole, row.stage) : null) : undefined;
      return <StageHead row={row} summary={summary} onFold={() => setClosed((before) => toggled(before, row.stage))} onAgent={(execution) => setChosen((before) => with_(before, row.stage, execution))} />;
    }
    switch (row.kind) {
      case "event":
        // An event of the run itself stands below its stages, and belongs to no agent.
        return row.ev.stageId === null ? <div className="of-run">{eventRow(row.ev)}</div> : eventRow(row.ev);
      case "agents":
        return <Lanes cells={row.agents.map((agent) => <AgentHead key={agent.execution} agent={agent} state={states.get(agent.execution)} open={!closedAgents.has(agent.execution)} onFold={onAgentFold} />)} />;
      case "steps":
        return <Lanes cells={row.steps.map((step) => step && stepRow(step))} />;
      case "lanes":
        return <Lanes cells={row.events.map((ev) => ev && eventRow(ev))} />;
    }
  };

  return (
    <>
      <div className="timeline-bar">
        <h2>{SECTIONS.timeline}</h2>
        <span className="hint">{counted(timeline.order.length, "events")}{loading && `, ${EMPTY.loading}`}</span>
        <span className="spring" />
        {finished && <button type="button" className="quiet" onClick={turnAll}>{allOpen ? ACTIONS.foldAll : ACTIONS.openAll}</button>}
        <input type="search" aria-label="Search in the timeline" placeholder="Search events" value={typed} onChange={(event) => setSearch(event.target.value)} />
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
});

/** Shows cells side by side; a single one has the full width. */
function Lanes({ cells }: { cells: readonly ReactNode[] }) {
  return cells.length === 1 ? cells[0] : <div className="lanes">{cells.map((cell, place) => <div key={place}>{cell}</div>)}</div>;
}

/** Returns the distance of the list from the top of the document, measured when what stands above it changes its size. */
function useTop(list: RefObject<HTMLElement | null>): number {
  const [top, setTop] = useState(0);
  useEffect(() => {
    const measure = () => {
      const now = list.current ? list.current.getBoundingClientRect().top + scrollY : 0;
      setTop((before) => (Math.abs(now - before) > 1 ? now : before));
    };
    // Observers are called after layout, so that reading positions forces none.
    const watch = new ResizeObserver(measure);
    for (let above: Element | null | undefined = list.current; above && above !== document.body; above = above.parentElement) watch.observe(above);
    return () => watch.disconnect();
  });
  return top;
}

/** Remembers which events and steps are open; those of a finished run are folded until they are opened, or followed by a link. */
function useFolds(finished: boolean, event: string | null) {
  const [allOpen, setAllOpen] = useState(false);
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [closed, setClosed] = useState<string | null>(null);
  /** `linked`: the linked event is this one, or one of this step: it is open until it is folded. */
  const isFolded = (id: string, linked = id === event ? event : null) => finished && (linked !== null && id !== closed ? false : turned.has(id) === allOpen);
  const turn = (id: string, linked = id === event ? event : null) => {
    if (linked !== null && id !== closed) {
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

function matching(rows: readonly FoldedRow[], search: string, streamed: Timeline["events"] = new Map()): readonly FoldedRow[] {
  const wanted = search.trim().toLowerCase();
  if (!wanted) return rows;
  return rows.filter((row) => {
    if (row.kind === "stage") return row.name.toLowerCase().includes(wanted);
    if (row.kind !== "event") return false;
    const { metadata, agent } = row.ev;
    const { content } = streamed.get(row.ev.id) ?? row.ev;
    return `${content} ${String(metadata["name"] ?? "")} ${String(metadata["arguments"] ?? "")} ${agent ?? ""}`.toLowerCase().includes(wanted);
  });
}
