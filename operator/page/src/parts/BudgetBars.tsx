/** Shows how much of its limits a running investigation has used. */
import type { Investigation } from "../api/types";
import { CLOSE, metersOf } from "../logic/budget";
import { METERS } from "../words";

export function BudgetBars({ item, now }: { item: Investigation; now: number }) {
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
          {share !== null && (
            <span className="meter" role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(share * 100)} aria-valuetext={`${used} ${METERS.of} ${limit}`}>
              <span style={{ width: `${share * 100}%` }} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
