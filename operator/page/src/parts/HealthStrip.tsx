/** Draws what an object did in each of the last hours. */
import { describedHours, toneOf, type Hour } from "../logic/system";

export function HealthStrip({ hours, kind }: { hours: readonly Hour[] | undefined; kind: string }) {
  if (!hours) return <span className="strip" aria-hidden="true" />;
  const text = describedHours(hours, kind === "Chain" || kind === "Agent" ? "runs" : "calls");
  return (
    <span className="strip" role="img" aria-label={text} title={text}>
      {hours.map((hour) => <span key={hour.hoursAgo} className={`hour h-${toneOf(hour)}`} />)}
    </span>
  );
}

export function HealthBadge({ state, children }: { state: string; children: string }) {
  return (
    <span className={`badge state-${state}`}>
      <span className="dot" aria-hidden="true" />
      {children}
    </span>
  );
}
