/** Draws the tool calls of a replay as a bar, by the origin of their answers. */
import { segments } from "../logic/suite";
import { RUNGS } from "../words";

/** The figures stand beside it as text, so the bar itself is decoration. */
export function RungBar({ rungs }: { rungs: Readonly<Record<string, number>> }) {
  const parts = segments(rungs);
  if (parts.length === 0) return null;
  return (
    <svg className="rungs" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      {parts.map((one) => (
        <rect key={one.rung} className={`r-${one.rung}`} x={one.left} width={Math.max(0, one.width - 0.6)} height="6" />
      ))}
    </svg>
  );
}

export function RungLegend() {
  return (
    <ul className="rung-legend">
      {Object.entries(RUNGS).map(([rung, word]) => (
        <li key={rung}>
          <svg className="rungs swatch" viewBox="0 0 6 6" aria-hidden="true"><rect className={`r-${rung}`} width="6" height="6" /></svg> {word}
        </li>
      ))}
    </ul>
  );
}
