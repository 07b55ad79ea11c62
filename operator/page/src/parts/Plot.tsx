/**
 * Frames the drawing of a chart: a name for screen readers, keys that select a value, and a box of fixed height.
 *
 * Decision: the drawing itself is loaded when it is shown (charting library), so the box has its height before it arrives
 * and nothing moves. What a selection shows is written below the chart, so keyboard, touch and screen reader get the same.
 */
import { Suspense, useState, type ReactNode } from "react";
import { moved } from "../logic/chart";
import { CHARTS } from "../words";

export type Draw = { place: number | null; onPlace: (place: number | null) => void };

/**
 * @param label what the chart shows, in a sentence
 * @param places the number of values that can be selected
 * @param describe the selected value, in words
 */
export function Plot({ label, places, place, onPlace, describe, children }: Draw & { label: string; places: number; describe: (place: number) => string; children: ReactNode }) {
  const [said, setSaid] = useState("");
  const pressed = (key: string): boolean => {
    const wanted = moved(key, place, places);
    if (wanted === null) return false;
    onPlace(wanted);
    setSaid(describe(wanted));
    return true;
  };
  const leave = () => {
    onPlace(null);
    setSaid("");
  };
  return (
    <>
      <div
        className="plot"
        role="group"
        tabIndex={0}
        aria-label={`${label}. ${CHARTS.keys}`}
        onKeyDown={(event) => (event.key === "Escape" ? leave() : pressed(event.key) && event.preventDefault())}
        onBlur={leave}
        onPointerLeave={leave}
      >
        <Suspense fallback={<span aria-busy="true" />}>{children}</Suspense>
      </div>
      <span className="visually-hidden" aria-live="polite">{said}</span>
    </>
  );
}
