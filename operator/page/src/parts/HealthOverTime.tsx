/** Draws the health of an object over time; pointer, keys and focus tell of each cell when and why. */
import { memo, useMemo, useState, type KeyboardEvent, type PointerEvent } from "react";
import type { ObjectHealth } from "../api/types";
import { cellsOf, describedCell, describedHealth, firstShown, type HealthPeriod } from "../logic/health";
import { HEALTH_OVER_TIME, SHOWN_HEALTH } from "../words";

type Props = { health: ObjectHealth; since: string; cellMinutes: number };

export const HealthOverTime = memo(function HealthOverTime({ health, since, cellMinutes }: Props) {
  const cells = useMemo(() => cellsOf(health.history, { since, cellMinutes } satisfies HealthPeriod), [health, since, cellMinutes]);
  const [at, setAt] = useState<number | null>(null);
  const shown = Math.min(at ?? firstShown(cells), cells.length - 1);
  const cell = cells[shown];
  if (!cell) return null;
  const point = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    setAt(Math.max(0, Math.min(cells.length - 1, Math.floor(((event.clientX - box.left) / box.width) * cells.length))));
  };
  const move = (event: KeyboardEvent) => {
    const to = { ArrowLeft: shown - 1, ArrowDown: shown - 1, ArrowRight: shown + 1, ArrowUp: shown + 1, Home: 0, End: cells.length - 1 }[event.key];
    if (event.key === "Escape") setAt(null);
    if (to === undefined) return;
    event.preventDefault();
    setAt(Math.max(0, Math.min(cells.length - 1, to)));
  };
  const problem = cell.health !== "Ready" && cell.health !== "NotRecorded";
  return (
    <div className="health-time">
      <div
        className="health-strip" role="slider" tabIndex={0} aria-orientation="horizontal"
        aria-label={`${HEALTH_OVER_TIME.of_} ${health.kind} ${health.namespace}/${health.name}: ${describedHealth(health)}`}
        aria-valuemin={1} aria-valuemax={cells.length} aria-valuenow={shown + 1} aria-valuetext={describedCell(cell)}
        onKeyDown={move} onFocus={() => setAt((before) => before ?? shown)} onBlur={() => setAt(null)}
        onPointerMove={point} onPointerDown={point} onPointerLeave={(event) => event.pointerType === "mouse" && event.currentTarget !== document.activeElement && setAt(null)}
      >
        {health.history.map((row, place) => <span key={place} className={`cells is-${row.health}`} style={{ flexGrow: row.cells }} />)}
        {at !== null && <span className="health-mark" style={{ left: `${(shown / cells.length) * 100}%`, width: `${100 / cells.length}%` }} />}
      </div>
      {at !== null && <p className={`health-tip${problem ? " bad" : ""}`} aria-hidden="true">{describedCell(cell)}</p>}
    </div>
  );
});

export function HealthLegend({ week }: { week: boolean }) {
  return (
    <p className="hint health-legend">
      {week ? HEALTH_OVER_TIME.legendWeek : HEALTH_OVER_TIME.legendDay}
      {(["Ready", "Degraded", "NotReady", "Unknown", "NotRecorded"] as const).map((health) => (
        <span key={health}><span className="health-strip sample" aria-hidden="true"><span className={`cells is-${health}`} /></span>{SHOWN_HEALTH[health]}</span>
      ))}
    </p>
  );
}
