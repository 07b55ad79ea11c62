/** Renders the visible part of the timeline, and follows its end while the reader is there. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { counted } from "../logic/format";
import { rowsOf, type Row, type Timeline } from "../logic/timeline";
import { EventRow } from "../parts/EventRow";
import { Badge } from "../parts/parts";
import { ACTIONS, SECTIONS } from "../words";

type Props = { timeline: Timeline; event: string | null; finished: boolean; link: (id: string) => string };
const NEAR = 160;
const MARGIN = 24;

export function TimelineList({ timeline, event, finished, link }: Props) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>(new Map());
  const [search, setSearch] = useState("");
  const rows = useMemo(() => rowsOf(timeline, chosen), [timeline, chosen]);
  const shown = useMemo(() => matching(rows, search), [rows, search]);
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const now = list.current ? list.current.getBoundingClientRect().top + scrollY : 0;
    if (Math.abs(now - top) > 1) setTop(now);
  });
  const virtual = useWindowVirtualizer({
    count: shown.length,
    estimateSize: (place) => (shown[place]?.kind === "stage" ? 44 : 120),
    getItemKey: (place) => shown[place]?.key ?? place,
    overscan: 6,
    scrollMargin: top,
  });

  const [following, setFollowing] = useState(!finished && !event);
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

  const there = event ? shown.findIndex((row) => row.key === event) : -1;
  const shownEvent = useRef<string | null>(null);
  useEffect(() => {
    if (!event || shownEvent.current === event) return;
    if (there >= 0) {
      shownEvent.current = event;
      setFollowing(false);
      virtual.scrollToIndex(there, { align: "center" });
    } else if (timeline.events.has(event)) {
      setSearch(""); // the event is in another tab, or filtered out
      setChosen(new Map());
    }
  }, [event, there, virtual, timeline]);

  return (
    <>
      <div className="timeline-bar">
        <h2>{SECTIONS.timeline}</h2>
        <span className="hint">{counted(timeline.order.length, "events")}</span>
        <span className="spring" />
        <input type="search" aria-label="Search in the timeline" placeholder="Search events" value={search} onChange={(event) => setSearch(event.target.value)} />
        {!finished && (
          <label className="follow">
            <input type="checkbox" checked={following} onChange={(event) => setFollowing(event.target.checked)} /> Follow
          </label>
        )}
      </div>
      <div ref={list} className="timeline" style={{ height }}>
        {virtual.getVirtualItems().map((item) => {
          const row = shown[item.index];
          if (!row) return null;
          return (
            <div key={item.key} ref={virtual.measureElement} data-index={item.index} className="row" style={{ transform: `translateY(${item.start - top}px)` }}>
              {row.kind === "stage" ? (
                <StageHead row={row} onAgent={(execution) => setChosen((before) => with_(before, row.stage, execution))} />
              ) : (
                <EventRow ev={row.ev} chosen={row.key === event} link={link(row.key)} />
              )}
            </div>
          );
        })}
      </div>
    </>
  );
}

/** Returns how far the end of the timeline is below the window, in pixels. Other sections may follow in narrow windows. */
function below(list: HTMLElement | null): number {
  return list ? list.getBoundingClientRect().bottom + MARGIN - innerHeight : 0;
}

function StageHead({ row, onAgent }: { row: Row & { kind: "stage" }; onAgent: (execution: string | null) => void }) {
  return (
    <div className="stage-row" id={`stage-${row.stage}`}>
      <h3>{row.name}</h3>
      {row.state && <Badge state={row.state} of="step" />}
      {row.agents.length > 1 && (
        <div className="tabs" role="group" aria-label={`Agents of ${row.name}`}>
          <button type="button" aria-pressed={row.chosen === null} onClick={() => onAgent(null)}>{ACTIONS.allAgents}</button>
          {row.agents.map((agent) => (
            <button type="button" key={agent.execution} aria-pressed={row.chosen === agent.execution} onClick={() => onAgent(agent.execution)}>
              {agent.name}
              {agent.streaming && <span className="live-dot" aria-label="live" role="img" />}
            </button>
          ))}
        </div>
      )}
    </div>
  );
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
    const { ev } = row;
    const text = `${ev.content} ${String(ev.metadata["name"] ?? "")} ${String(ev.metadata["arguments"] ?? "")} ${ev.agent ?? ""}`;
    return text.toLowerCase().includes(wanted);
  });
}
