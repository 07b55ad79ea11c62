/**
 * Reads the series of a metric from the text of a result, and lays out their line charts.
 *
 * Decision: the text is the one that the model sees and that the record keeps (prometheus_tools/picture.py writes it). Text
 * of another form draws nothing.
 */
import { clock } from "./format";

/** A series: values at equal distances, null where there is no sample. Times are in seconds of Unix time. */
export type Series = { title: string; start: number; step: number; values: readonly (number | null)[]; onset: number | null; unit: Unit };
type Unit = "bytes" | "seconds" | "";
type Point = readonly [x: number, y: number];
export type Line = { segments: readonly (readonly Point[])[]; onsetX: number | null; low: number; high: number; bottom: number; top: number; from: string; to: string };

export const CHART = { width: 600, height: 96, most: 4, leastSpan: 0.1 } as const;
const MOST_VALUES = 24;
const ONSET = /\bonset (\S+) \(/;
const SHAPE = /^ {2}shape (\S+) \+([\d.]+)s: (.+)$/;
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function seriesOf(text: string): Series[] {
  const found: Series[] = [];
  let title: string | null = null;
  let onset: number | null = null;
  for (const line of text.split("\n")) {
    const shape = SHAPE.exec(line);
    if (line.startsWith("series ")) {
      title = line.slice("series ".length).trim();
      onset = null;
    } else if (title !== null && shape) {
      const [start, step, values] = [seconds(shape[1]), Number(shape[2]), read(shape[3] ?? "")];
      if (start !== null && step > 0 && values.some((one) => one !== null)) found.push({ title, start, step, values, onset, unit: unitOf(title) });
      title = null;
    } else if (title !== null) {
      const when = ONSET.exec(line)?.[1];
      if (when !== undefined) onset = seconds(when);
    }
  }
  return found;
}

/**
 * Lays out a series in a box of CHART.width by CHART.height; a segment ends at each gap. The axis spans at least a tenth of
 * the largest value, so that noise is not drawn as a change.
 */
export function lineOf(series: Series): Line {
  const known = series.values.filter((one) => one !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const across = CHART.width / Math.max(1, series.values.length - 1);
  const lacking = Math.max(0, CHART.leastSpan * Math.max(Math.abs(low), Math.abs(high)) - (high - low)) / 2;
  const [bottom, top] = [low - lacking, high + lacking];
  const y = (value: number) => (top === bottom ? CHART.height / 2 : CHART.height * (1 - (value - bottom) / (top - bottom)));
  const segments: Point[][] = [];
  let open: Point[] | null = null;
  series.values.forEach((value, at) => {
    if (value === null) open = null;
    else if (open) open.push([round(at * across), round(y(value))]);
    else segments.push((open = [[round(at * across), round(y(value))]]));
  });
  const last = series.values.length - 1;
  const at = series.onset === null ? -1 : (series.onset - series.start) / series.step;
  const end = series.start + last * series.step;
  return { segments, onsetX: at >= 0 && at <= last + 1 ? round(Math.min(at, last) * across) : null, low, high, bottom, top, from: timeOf(series.start), to: timeOf(end) };
}

/** Describes the chart for those who do not see it. */
export function describe(series: Series): string {
  const { low, high, from, to } = lineOf(series);
  const last = series.values.findLast((one) => one !== null) ?? null;
  const gaps = series.values.filter((one) => one === null).length;
  return [
    `${series.title} from ${from} to ${to}: lowest ${written(low, series.unit)}, highest ${written(high, series.unit)}, last ${written(last ?? low, series.unit)}`,
    ...(series.onset === null ? [] : [`onset at ${timeOf(series.onset)}`]),
    ...(gaps > 0 ? [`${gaps} of ${series.values.length} values missing`] : []),
  ].join("; ");
}

/** Writes a value with at most three digits and its unit. */
export function written(value: number, unit: Unit): string {
  if (unit === "bytes" && Math.abs(value) >= 1024) {
    const power = Math.min(BINARY.length - 1, Math.floor(Math.log2(Math.abs(value)) / 10));
    return `${short(value / 1024 ** power)} ${BINARY[power]}`;
  }
  if (unit === "seconds" && value !== 0 && Math.abs(value) < 1) return `${short(value * 1000)} ms`;
  return unit === "bytes" ? `${short(value)} B` : unit === "seconds" ? `${short(value)} s` : short(value);
}

export function timeOf(at: number): string {
  return clock(new Date(at * 1000).toISOString());
}

/** The unit by the name of the metric; a query that is no plain metric has no name, and no unit. */
function unitOf(title: string): Unit {
  const found = /^[a-zA-Z_:][\w:]*?_(bytes|seconds)(?=\{|\s|$)/.exec(title);
  return (found?.[1] ?? "") as Unit;
}

function short(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(2) : String(Number(value.toPrecision(3)));
}

function read(text: string): (number | null)[] {
  const values = text.trim().split(/\s+/).slice(0, MOST_VALUES).map((word) => (word === "-" ? null : Number(word)));
  return values.some((one) => Number.isNaN(one)) ? [] : values.map((one) => (one !== null && Number.isFinite(one) ? one : null));
}

function seconds(text: string | undefined): number | null {
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) ? null : at / 1000;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
