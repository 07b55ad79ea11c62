/** Shows how much of a quota is spent and reserved in its current period. */
import type { QuotaItem } from "../api/types";
import { moment } from "../logic/format";
import { barsOf } from "../logic/quota";
import { METERS, QUOTAS } from "../words";
import { Meter } from "./Meter";

export function QuotaBars({ quota }: { quota: QuotaItem }) {
  const happens = QUOTAS.happens[quota.onExceeded as keyof typeof QUOTAS.happens] ?? quota.onExceeded;
  return (
    <>
      <p className="stages-line">
        {quota.period}{quota.ends && <>, {QUOTAS.until} {moment(quota.ends)}</>}
        {quota.exceeded && <strong> {QUOTAS.exceeded} {happens}</strong>}
      </p>
      <ul className="meters quotas" aria-label={QUOTAS.title}>
        {barsOf(quota).map((bar) => (
          <li key={bar.name} className={bar.full ? "over" : bar.warned ? "close" : ""}>
            <span className="meter-text">
              <span className="hint">{bar.name}</span> {bar.spent}
              {bar.reserved && <span className="hint"> + {bar.reserved} {QUOTAS.reserved}</span>}
              <span className="hint"> {METERS.of} {bar.hard}</span>
            </span>
            <Meter
              name={bar.name}
              className="quota"
              text={`${bar.spent}${bar.reserved ? ` + ${bar.reserved} ${QUOTAS.reserved}` : ""} ${METERS.of} ${bar.hard}`}
              parts={[{ share: bar.spentShare }, ...(bar.reservedShare > 0 ? [{ share: bar.reservedShare, held: true }] : [])]}
            />
          </li>
        ))}
      </ul>
    </>
  );
}
