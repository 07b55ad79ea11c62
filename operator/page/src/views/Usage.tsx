/** Shows tokens and cost by day and by group, quotas, and the quality of findings. */
import { useState } from "react";
import type { DailyUsage, Quality, Quotas, UsageItem } from "../api/types";
import { isEmpty } from "../logic/chart";
import { cost, count } from "../logic/format";
import { MEASURES, usageLink, type Measure, type UsageGroup } from "../logic/route";
import { percent } from "../logic/suite";
import { costOfFinding, measureOf, usageChart } from "../logic/usage";
import { zoneName } from "../logic/zone";
import { go, scope, useGet, useTitle, useWorld } from "../parts/context";
import { DayChart } from "../parts/DayChart";
import { Meter } from "../parts/Meter";
import { Empty, Problem, Section } from "../parts/parts";
import { QualityCards } from "../parts/QualityCards";
import { QuotaBars } from "../parts/QuotaBars";
import { ACTIONS, COLUMNS, EMPTY, GROUPS, MEASURE_WORDS, SECTIONS, USAGE, VIEWS } from "../words";

const BY = Object.entries(GROUPS) as [UsageGroup, string][];
/** Seconds between two looks at what is spent. */
const QUOTA_SECONDS = 15;
const DAYS = [1, 7, 30, 90, 365];
/** Groups that are listed at first. */
const MOST_ROWS = 10;
/** Namespaces that one request names. */
const MOST_NAMESPACES = 20;

export default function UsagePage({ by, days, show }: { by: UsageGroup; days: number; show: Measure | null }) {
  useTitle(VIEWS.usage);
  const world = useWorld();
  const namespace = scope(world);
  const timeZone = zoneName();
  const usage = useGet<DailyUsage>("/usage/days", { by, days, namespace, timeZone });
  const quality = useGet<Quality>("/quality", { days, namespace, timeZone });
  const quotas = useGet<Quotas>("/investigationquotas", { namespace, limit: 200 }, QUOTA_SECONDS);
  const measure = measureOf(show, usage.value);
  const to = (changed: { by?: UsageGroup; days?: number; show?: Measure }) => go(usageLink(changed.by ?? by, changed.days ?? days, changed.show ?? show), true);
  return (
    <div className="view wide usage">
      <div className="title-row">
        <h1>{VIEWS.usage}</h1>
        <span className="spring" />
        <select aria-label={USAGE.show} value={measure} onChange={(event) => to({ show: event.target.value as Measure })}>
          {MEASURES.map((one) => <option key={one} value={one}>{MEASURE_WORDS[one]}</option>)}
        </select>
        <select aria-label={USAGE.groupBy} value={by} onChange={(event) => to({ by: event.target.value as UsageGroup })}>
          {BY.map(([name, words]) => <option key={name} value={name}>{words}</option>)}
        </select>
        <select aria-label={USAGE.period} value={days} onChange={(event) => to({ days: Number(event.target.value) })}>
          {(DAYS.includes(days) ? DAYS : [...DAYS, days]).map((one) => (
            <option key={one} value={one}>{one === 1 ? USAGE.today : `Last ${one} days`}</option>
          ))}
        </select>
      </div>
      {!world.namespace && !world.namespaces.everywhere && world.namespaces.items.length > MOST_NAMESPACES && <p className="hint">{USAGE.someNamespaces}</p>}
      {usage.error && <Problem error={usage.error} />}
      {!usage.error && <ByDay usage={usage.value} measure={measure} />}
      {usage.value && usage.value.items.length > 0 && <Section title={SECTIONS.usageByGroup}><Sums usage={usage.value} measure={measure} /></Section>}
      {quality.error && !usage.error && <Problem error={quality.error} />}
      {quotas.error && !usage.error && <Problem error={quotas.error} title={SECTIONS.quotas} />}
      <div className="grid">
        {quotas.value && <QuotaCard quotas={quotas.value} />}
        {quality.value && <QualityCards quality={quality.value} until={Date.now()} />}
      </div>
    </div>
  );
}

/** Shows the sums of the period above its days; the box is there before they are. */
function ByDay({ usage, measure }: { usage: DailyUsage | null; measure: Measure }) {
  if (!usage) return <Section title={SECTIONS.usageByDay}><div className="plot" aria-busy="true" /></Section>;
  const { total } = usage;
  const chart = usageChart(usage, measure);
  const withoutPrice = total.callsOfUnknownCost > 0 && total.costUSD === null;
  return (
    <>
      <dl className="figures large">
        <div><dt>{COLUMNS.cost}</dt><dd>{money(total)}</dd></div>
        <div><dt>{USAGE.costOfFinding}</dt><dd>{moneyAFinding(total)}</dd></div>
        <div><dt>{USAGE.findings}</dt><dd>{count(total.findings)}</dd></div>
        <div><dt>{COLUMNS.investigations}</dt><dd>{count(total.investigations)}</dd></div>
        <div><dt>{COLUMNS.tokens}</dt><dd>{count(total.inputTokens + total.outputTokens)}</dd></div>
        <div><dt>{COLUMNS.modelCalls}</dt><dd>{count(total.calls)}</dd></div>
        <div><dt>{COLUMNS.interrupted}</dt><dd>{count(total.interrupted)}</dd></div>
      </dl>
      <Section title={`${MEASURE_WORDS[measure]} ${USAGE.byDayAnd} ${GROUPS[usage.by].toLowerCase()}`} side={<span className="hint">{usage.timeZone}</span>}>
        {total.callsOfUnknownCost > 0 && <p className="hint">{withoutPrice ? USAGE.noPrice : USAGE.partlyUnknown}</p>}
        {!isEmpty(chart) && <DayChart title={MEASURE_WORDS[measure]} chart={chart} />}
        {isEmpty(chart) && !withoutPrice && <Empty>{EMPTY.noUsage}</Empty>}
      </Section>
    </>
  );
}

function QuotaCard({ quotas }: { quotas: Quotas }) {
  return (
    <Section title={SECTIONS.quotas}>
      {quotas.items.length === 0 && <Empty>{EMPTY.noQuotas}</Empty>}
      {quotas.items.map((one) => (
        <article key={one.uid}>
          <h3>{one.namespace}/{one.name}</h3>
          <QuotaBars quota={one} />
        </article>
      ))}
    </Section>
  );
}

function Sums({ usage, measure }: { usage: DailyUsage; measure: Measure }) {
  const [all, setAll] = useState(false);
  const valueOf = (item: UsageItem) => (measure === "cost" ? item.costUSD : item.inputTokens + item.outputTokens);
  const whole = valueOf(usage.total) ?? 0;
  const shareOf = (item: UsageItem) => (valueOf(item) === null || whole === 0 ? null : (valueOf(item) ?? 0) / whole);
  return (
    <>
      <div className="scroll" tabIndex={0} role="region" aria-label={SECTIONS.usageByGroup}>
        <table className="sums">
          <thead>
            <tr>
              <th scope="col">{GROUPS[usage.by]}</th>
              {[COLUMNS.cost, USAGE.costOfFinding].map((name) => <th scope="col" key={name} className="number">{name}</th>)}
              <th scope="col" className="share">{USAGE.share}</th>
              {[USAGE.findings, COLUMNS.investigations, COLUMNS.modelCalls, COLUMNS.input, COLUMNS.cached, COLUMNS.output].map((name) => (
                <th scope="col" key={name} className="number">{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {usage.items.slice(0, all ? undefined : MOST_ROWS).map((item) => (
              <Row key={item.name} item={item} share={shareOf(item)} />
            ))}
          </tbody>
          <tfoot><Row item={{ ...usage.total, name: USAGE.sum }} share={null} /></tfoot>
        </table>
      </div>
      {usage.items.length > MOST_ROWS && (
        <button type="button" className="link" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? ACTIONS.less : `${ACTIONS.more} (${usage.items.length - MOST_ROWS})`}
        </button>
      )}
      {usage.omitted > 0 && <p className="hint">{usage.omitted} {USAGE.moreGroups}</p>}
    </>
  );
}

function Row({ item, share }: { item: UsageItem; share: number | null }) {
  return (
    <tr>
      <th scope="row">{item.name}</th>
      <td className="number">{money(item)}</td>
      <td className="number">{moneyAFinding(item)}</td>
      <td className="share">{share !== null && <><Meter name={`${USAGE.share}, ${item.name}`} text={percent(share)} parts={[{ share }]} /> <span className="hint">{percent(share)}</span></>}</td>
      <td className="number">{count(item.findings)}</td>
      <td className="number">{count(item.investigations)}</td>
      <td className="number">{count(item.calls)}</td>
      <td className="number">{count(item.inputTokens)}</td>
      <td className="number">{count(item.cachedTokens)}{item.cachedTokens > 0 && <span className="hint"> {percent(item.cachedTokens / item.inputTokens)}</span>}</td>
      <td className="number">{count(item.outputTokens)}</td>
    </tr>
  );
}

function money(item: UsageItem): string {
  return cost({ costUSD: item.costUSD, costComplete: item.callsOfUnknownCost === 0 });
}

function moneyAFinding(item: UsageItem): string {
  return cost({ costUSD: costOfFinding(item), costComplete: item.callsOfUnknownCost === 0 });
}
