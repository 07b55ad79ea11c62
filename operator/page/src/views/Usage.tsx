/** Shows tokens and cost over time and by group. */
import type { Quotas, Usage } from "../api/types";
import { cost, count } from "../logic/format";
import { percent } from "../logic/suite";
import { go, scope, useGet, useTitle, useWorld } from "../parts/context";
import { Empty, Problem, Section } from "../parts/parts";
import { QuotaBars } from "../parts/QuotaBars";
import { COLUMNS, EMPTY, GROUPS, OPTIONS, SECTIONS, VIEWS } from "../words";

const BY = Object.entries(GROUPS);
/** Seconds between two looks at what is spent. */
const QUOTA_SECONDS = 15;
const DAYS = [1, 7, 30, 90, 365];

export default function UsagePage({ by, days }: { by: string; days: number }) {
  useTitle(VIEWS.usage);
  const namespace = scope(useWorld());
  const group = BY.some(([name]) => name === by) ? by : "model";
  const daily = useGet<Usage>("/usage", { by: "day", days, namespace, limit: 366 });
  const grouped = useGet<Usage>("/usage", { by: group, days, namespace });
  const quotas = useGet<Quotas>("/investigationquotas", { namespace, limit: 200 }, QUOTA_SECONDS);
  const total = grouped.value?.total;
  const to = (changed: { by?: string; days?: number }) => {
    const next = { by: group, days, ...changed };
    go(`#/usage?by=${next.by}&days=${next.days}`, true);
  };
  return (
    <div className="view wide">
      <div className="title-row">
        <h1>{VIEWS.usage}</h1>
        <span className="spring" />
        <select aria-label="Period" value={days} onChange={(event) => to({ days: Number(event.target.value) })}>
          {(DAYS.includes(days) ? DAYS : [...DAYS, days]).map((one) => (
            <option key={one} value={one}>{one === 1 ? OPTIONS.lastDay : `Last ${one} days`}</option>
          ))}
        </select>
      </div>
      {(daily.error ?? grouped.error) && <Problem error={(daily.error ?? grouped.error) as Error} />}
      {total && (
        <dl className="figures large">
          <div><dt>{COLUMNS.cost}</dt><dd>{cost({ costUSD: total.costUSD, costComplete: total.callsOfUnknownCost === 0 })}</dd></div>
          <div><dt>{COLUMNS.tokens}</dt><dd>{count(total.inputTokens + total.outputTokens)}</dd></div>
          <div><dt>{COLUMNS.modelCalls}</dt><dd>{count(total.calls)}</dd></div>
          <div><dt>{COLUMNS.interrupted}</dt><dd>{total.interrupted}</dd></div>
        </dl>
      )}
      {quotas.value && (
        <Section title={SECTIONS.quotas}>
          {quotas.value.items.length === 0 && <Empty>{EMPTY.noQuotas}</Empty>}
          {quotas.value.items.map((one) => (
            <article key={one.uid}>
              <h3>{one.namespace}/{one.name}</h3>
              <QuotaBars quota={one} />
            </article>
          ))}
        </Section>
      )}
      <Section title={SECTIONS.usageByDay}>{daily.value && (daily.value.items.length > 0 ? <Chart usage={daily.value} /> : <Empty>{EMPTY.noUsage}</Empty>)}</Section>
      <Section
        title={SECTIONS.usageByGroup}
        side={
          <select aria-label="Group by" value={group} onChange={(event) => to({ by: event.target.value })}>
            {BY.map(([name, words]) => (
              <option key={name} value={name}>{words}</option>
            ))}
          </select>
        }
      >
        {grouped.value && <UsageTable usage={grouped.value} />}
      </Section>
    </div>
  );
}

/** Draws tokens per day as bars, input below output; the label contains the figures for screen readers. */
function Chart({ usage }: { usage: Usage }) {
  const most = Math.max(1, ...usage.items.map((day) => day.inputTokens + day.outputTokens));
  const width = Math.min(4, 100 / usage.items.length);
  const said = usage.items.map((day) => `${day.name}: ${count(day.inputTokens + day.outputTokens)} tokens, ${cost(day)}`).join("; ");
  return (
    <figure className="chart">
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={said}>
        {usage.items.map((day, place) => {
          const input = (day.inputTokens / most) * 39;
          const output = (day.outputTokens / most) * 39;
          const x = place * width + width * 0.15;
          return (
            <g key={day.name}>
              <title>{`${day.name}: ${count(day.inputTokens)} in, ${count(day.outputTokens)} out, ${cost(day)}`}</title>
              <rect className="in" x={x} width={width * 0.7} y={40 - input} height={input} />
              <rect className="out" x={x} width={width * 0.7} y={40 - input - output} height={output} />
            </g>
          );
        })}
      </svg>
      <figcaption>
        <span>{usage.items[0]?.name}</span>
        <span className="legend"><span className="swatch in" /> input <span className="swatch out" /> output</span>
        <span>{usage.items.at(-1)?.name}</span>
      </figcaption>
    </figure>
  );
}

function UsageTable({ usage }: { usage: Usage }) {
  if (usage.items.length === 0) return <Empty>{EMPTY.noUsage}</Empty>;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Usage">
      <table>
        <thead>
          <tr>
            <th scope="col">{COLUMNS.name}</th>
            {[COLUMNS.investigations, COLUMNS.modelCalls, COLUMNS.input, COLUMNS.cached, COLUMNS.output, COLUMNS.cost].map((name) => (
              <th scope="col" key={name} className="number">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {usage.items.map((item) => (
            <tr key={item.name}>
              <th scope="row">{item.name}</th>
              <td className="number">{count(item.investigations)}</td>
              <td className="number">{count(item.calls)}</td>
              <td className="number">{count(item.inputTokens)}</td>
              <td className="number">{count(item.cachedTokens)}{item.cachedTokens > 0 && <span className="hint"> {percent(item.cachedTokens / item.inputTokens)}</span>}</td>
              <td className="number">{count(item.outputTokens)}</td>
              <td className="number">{cost({ costUSD: item.costUSD, costComplete: item.callsOfUnknownCost === 0 })}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {usage.omitted > 0 && <p className="hint">{usage.omitted} more groups, included in the total</p>}
    </div>
  );
}
