/**
 * Prepares values by day for charts, and describes charts in words.
 *
 * Decision: a chart is data, so that its picture, its legend and its table are made of the same values. Many days are summed
 * up to weeks, which end today: a bar that is narrower than a pixel shows nothing.
 */
import { CHARTS } from "../words";
import { count, dollars } from "./format";

export type Unit = "dollars" | "tokens" | "findings" | "percent";
/** Values of a name; null: not known. A tone says what the values mean; without one, series differ by their place. */
export type Series = { name: string; values: readonly (number | null)[]; tone?: Tone };
export type Tone = "good" | "warn" | "bad";
/** A day or a week: the text of the axis, and the text that stands alone. */
export type Bucket = { label: string; title: string };
export type Chart = { unit: Unit; buckets: readonly Bucket[]; series: readonly Series[] };

export const DAYS_OF_WEEK = 7;
/** Days from which on usage is shown by week. */
export const MOST_DAYS = 92;
/** Days from which on verdicts and outcomes, which are few, are shown by week. */
export const MOST_DAYS_OF_FEW = 31;
/** Series that differ in colour and texture. */
export const MOST_SERIES = 8;

/**
 * Returns a chart of values by day.
 *
 * @param unit of the values
 * @param dates the days as YYYY-MM-DD, the oldest first
 * @param series a value for each day
 * @param most the number of days from which on weeks are shown
 */
export function chartOfDays(unit: Unit, dates: readonly string[], series: readonly Series[], most: number): Chart {
  if (dates.length <= most) return { unit, series, buckets: dates.map(dayBucket) };
  const ends: number[] = [];
  for (let end = dates.length; end > 0; end -= DAYS_OF_WEEK) ends.unshift(end);
  const weeks = ends.map((end) => [Math.max(0, end - DAYS_OF_WEEK), end] as const);
  return {
    unit,
    buckets: weeks.map(([from, end]) => ({ label: short(dates[from] ?? ""), title: `${short(dates[from] ?? "")} ${CHARTS.to} ${short(dates[end - 1] ?? "")}` })),
    series: series.map(({ values, ...rest }) => ({ ...rest, values: weeks.map(([from, end]) => sumOf(values.slice(from, end))) })),
  };
}

export function dayBucket(date: string): Bucket {
  return { label: short(date), title: short(date) };
}

/** Sums up what is known; null if something is not known, and all else is nothing. */
export function sumOf(values: readonly (number | null)[]): number | null {
  const sum = values.reduce<number>((all, one) => all + (one ?? 0), 0);
  return sum === 0 && values.includes(null) ? null : sum;
}

/** Writes a sum, with a + where a part is not known. */
export function writtenSum(unit: Unit, values: readonly (number | null)[]): string {
  const sum = sumOf(values);
  return written(unit, sum) + (sum !== null && values.includes(null) ? "+" : "");
}

/** Returns the sum of what is known of all series in a bucket. */
export function totalOf(chart: Chart, bucket: number): number | null {
  return sumOf(valuesOf(chart, bucket));
}

/** Returns the values of all series in a bucket. */
export function valuesOf(chart: Chart, bucket: number): (number | null)[] {
  return chart.series.map((one) => one.values[bucket] ?? null);
}

/** Returns the largest sum of a bucket; at least 1 where nothing was counted, so that an axis has a length. */
export function topOf(chart: Chart): number {
  const most = Math.max(0, ...chart.buckets.map((_, place) => totalOf(chart, place) ?? 0));
  return most > 0 ? most : 1;
}

/** Tells whether a value is in no series above 0. */
export function isEmpty(chart: Chart): boolean {
  return chart.series.every((one) => one.values.every((value) => (value ?? 0) === 0));
}

/** Returns whether a part of a bucket is not known. */
export function isUnknown(chart: Chart, bucket: number): boolean {
  return chart.series.some((one) => one.values[bucket] === null);
}

/** Returns the class of a series. */
export function toneOf(series: { tone?: Tone }, place: number): string {
  return series.tone ?? `tone-${Math.min(place, MOST_SERIES)}`;
}

export function written(unit: Unit, value: number | null): string {
  if (value === null) return "–";
  if (unit === "dollars") return dollars(value);
  return unit === "percent" ? `${Math.round(value * 100)}%` : count(value);
}

/** Writes a value of an axis: without cents where there are none. */
export function tick(unit: Unit, value: number): string {
  return unit === "dollars" && Number.isInteger(value) ? `$${count(value)}` : written(unit, value);
}

/** Describes a bucket: its sum, and each series that is not 0. */
export function describeBucket(chart: Chart, bucket: number): string {
  const parts = chart.series.flatMap(({ name, values }) => (values[bucket] === 0 ? [] : [`${name} ${written(chart.unit, values[bucket] ?? null)}`]));
  return `${chart.buckets[bucket]?.title ?? ""}: ${writtenSum(chart.unit, valuesOf(chart, bucket))}${parts.length > 1 ? ` (${parts.join(", ")})` : ""}`;
}

/** Describes a chart for those who do not see it: its length, its sum and its highest bucket. */
export function describeChart(title: string, chart: Chart): string {
  const totals = chart.buckets.map((_, place) => totalOf(chart, place) ?? 0);
  const highest = totals.indexOf(Math.max(...totals));
  const [from, to] = [chart.buckets[0]?.title ?? "", chart.buckets.at(-1)?.title ?? ""];
  return `${title}, ${from} ${CHARTS.to} ${to}: ${writtenSum(chart.unit, chart.series.flatMap((one) => one.values))}; ${CHARTS.highest} ${describeBucket(chart, highest)}`;
}

/** Returns the places whose labels fit beside each other; the last one is always among them. */
export function labelled(buckets: number, width: number, least: number): number[] {
  const step = Math.max(1, Math.ceil((buckets * least) / Math.max(1, width)));
  const found: number[] = [];
  for (let place = buckets - 1; place >= 0; place -= step) found.unshift(place);
  return found;
}

/** Returns the place that a key selects; null: the key selects none. */
export function moved(key: string, place: number | null, places: number): number | null {
  const now = place ?? places - 1;
  const wanted = { ArrowLeft: place === null ? now : now - 1, ArrowRight: now + 1, Home: 0, End: places - 1 }[key];
  return wanted === undefined || places === 0 ? null : Math.min(places - 1, Math.max(0, wanted));
}

function short(date: string): string {
  return new Date(`${date}T00:00:00Z`).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
}
