/** Shows how much of its limits a running investigation has used. */
import { memo } from "react";
import type { Investigation } from "../api/types";
import { CLOSE, metersOf } from "../logic/budget";
import { METERS } from "../words";
import { Meter } from "./Meter";

export const BudgetBars = memo(function BudgetBars({ item, now }: { item: Investigation; now: number }) {
  const meters = metersOf(item, now);
  if (meters.length === 0) return null;
  return (
    <ul className="meters" aria-label={METERS.title}>
      {meters.map(({ name, used, limit, share }) => (
        <li key={name} className={share === null ? "" : share >= 1 ? "over" : share >= CLOSE ? "close" : ""}>
          <span className="meter-text">
            <span className="hint">{name}</span> {used}
            {limit !== null && <span className="hint"> {METERS.of} {limit}</span>}
          </span>
          {share !== null && <Meter name={name} text={`${used} ${METERS.of} ${limit}`} parts={[{ share }]} />}
        </li>
      ))}
    </ul>
  );
});
