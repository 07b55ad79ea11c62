/** Prepares reports of usage and of quality for charts and tables. */
import type { DailyUsage, Quality } from "../api/types";
import { OUTCOMES, REVIEW_VERDICTS, USAGE } from "../words";
import { chartOfDays, MOST_DAYS, MOST_DAYS_OF_FEW, MOST_SERIES, type Chart, type Series } from "./chart";
import type { Measure } from "./route";

export type EvalResult = NonNullable<Quality["evaluations"]>["items"][number];
/** Results of a suite, the oldest first. */
export type SuiteCourse = { name: string; results: readonly EvalResult[] };

/** Returns what is shown: what the URL names, else the cost, or tokens where no cost is known. */
export function measureOf(named: Measure | null, usage: DailyUsage | null): Measure {
  return named ?? (usage && usage.total.calls > 0 && usage.total.costUSD === null ? "tokens" : "cost");
}

export function usageChart(usage: DailyUsage, measure: Measure): Chart {
  const series = usage.series.map((one) => ({ name: one.name ?? USAGE.others, values: measure === "cost" ? one.costUSD : one.tokens }));
  return chartOfDays(measure === "cost" ? "dollars" : "tokens", datesOf(usage), series, MOST_DAYS);
}

/** Returns the known cost divided by the findings; null: no cost is known, or there is no finding. */
export function costOfFinding(item: { costUSD: number | null; findings: number }): number | null {
  return item.costUSD !== null && item.findings > 0 ? item.costUSD / item.findings : null;
}

export function verdictChart(quality: Quality): Chart | null {
  const days = quality.reviews?.days;
  if (!days) return null;
  const series: Series[] = [
    { name: REVIEW_VERDICTS.Right, tone: "good", values: days.map((day) => day.right) },
    { name: REVIEW_VERDICTS.Partly, tone: "warn", values: days.map((day) => day.partly) },
    { name: REVIEW_VERDICTS.Wrong, tone: "bad", values: days.map((day) => day.wrong) },
  ];
  return chartOfDays("findings", datesOf(quality), series, MOST_DAYS_OF_FEW);
}

export function outcomeChart(quality: Quality): Chart {
  const of = (name: keyof Quality["outcomes"][number]) => quality.outcomes.map((day) => day[name]);
  const series: Series[] = [
    { name: OUTCOMES.Settled.name, tone: "good", values: of("settled") },
    { name: OUTCOMES.ChangedAndSettled.name, values: of("changedAndSettled") },
    { name: OUTCOMES.Recurred.name, tone: "bad", values: of("recurred") },
  ];
  return chartOfDays("findings", datesOf(quality), series, MOST_DAYS_OF_FEW);
}

/** Returns the suites with the most results, each with its results, the oldest first; and the number of the others. */
export function suiteCourses(results: readonly EvalResult[]): { courses: SuiteCourse[]; hidden: number } {
  const found = new Map<string, EvalResult[]>();
  for (const one of results.toReversed().filter((result) => result.samples > 0)) {
    const name = `${one.namespace}/${one.suite}`;
    found.set(name, [...(found.get(name) ?? []), one]);
  }
  const courses = [...found].map(([name, of]) => ({ name, results: of })).sort((a, b) => b.results.length - a.results.length || a.name.localeCompare(b.name));
  return { courses: courses.slice(0, MOST_SERIES), hidden: Math.max(0, courses.length - MOST_SERIES) };
}

export function passShare(result: EvalResult): number {
  return result.samples > 0 ? result.passed / result.samples : 0;
}

function datesOf(report: { days: readonly { date: string }[] }): string[] {
  return report.days.map((day) => day.date);
}
