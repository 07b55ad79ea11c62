/** Decides what a table of case by revision shows: the words of a cell, the segments of its bar, and the cases that need a look. */
import type { EvalSuite, JudgeOfRun, MeasuredRun, SuiteCase, SuiteCell } from "../api/types";
import { JUDGES, MARKS, RUNGS } from "../words";
import { cost, count, wordOf } from "./format";

export type Mark = keyof typeof MARKS;
export type Segment = { rung: string; word: string; count: number; left: number; width: number };

const ORDER = Object.keys(RUNGS);
const SIGNS: Record<Mark, string> = { regressed: "▼", improved: "▲", failed: "✕", inconclusive: "?", flaky: "≈", confidentlyWrong: "!" };

/** Returns the marks of a cell, the most serious first. Each has a sign and a word, so none depends on a colour. */
export function marksOf(cell: SuiteCell): Mark[] {
  return [
    ...(cell.regressed ? (["regressed"] as const) : []),
    ...(cell.confidentWrong > 0 ? (["confidentlyWrong"] as const) : []),
    ...(cell.outcome === "Failed" && !cell.regressed ? (["failed"] as const) : []),
    ...(cell.outcome === "Inconclusive" ? (["inconclusive"] as const) : []),
    ...(cell.flaky ? (["flaky"] as const) : []),
    ...(cell.improved ? (["improved"] as const) : []),
  ];
}

export function signOf(mark: Mark): string {
  return SIGNS[mark];
}

/** Returns the calls of a cell by the origin of their answers, the best first, as parts of 100. */
export function segments(rungs: Readonly<Record<string, number>>): Segment[] {
  const known = Object.entries(rungs).filter(([, count]) => count > 0);
  const all = known.reduce((sum, [, count]) => sum + count, 0);
  const rank = (rung: string) => (ORDER.includes(rung) ? ORDER.indexOf(rung) : ORDER.length);
  let left = 0;
  return known
    .sort(([one], [two]) => rank(one) - rank(two) || one.localeCompare(two))
    .map(([rung, count]) => {
      const width = (count / all) * 100;
      left += width;
      return { rung, word: wordOf(RUNGS, rung) ?? rung, count, left: left - width, width };
    });
}

/** Returns the state whose badge a verdict has. */
export function stateOfVerdict(verdict: string | null): string {
  const states: Record<string, string> = { Passed: "completed", Regressed: "failed", Insufficient: "cancelled", Cancelled: "cancelled" };
  return verdict === null ? "running" : (wordOf(states, verdict) ?? "pending");
}

/** Returns the state whose badge an outcome of a sample or of a check has. */
export function stateOfOutcome(outcome: string | null): string {
  const states: Record<string, string> = { Passed: "completed", Failed: "failed" };
  return outcome === null ? "running" : (wordOf(states, outcome) ?? "cancelled");
}

export function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

export function passRate(run: MeasuredRun): string {
  return run.passRate === null ? "–" : `${percent(run.passRate)} (${percent(run.passRateLow)}-${percent(run.passRateHigh)})`;
}

/** Writes what the judge of a run was worth and used. */
export function judgeOf(judge: JudgeOfRun): string {
  const role = judge.role === null ? JUDGES.measuring : (wordOf(JUDGES, judge.role) ?? judge.role);
  const kappa = judge.kappa === null ? "" : `, kappa ${judge.kappa.toFixed(2)}`;
  return `${role}${kappa}, ${cost(judge)}`;
}

/** Writes why, and what was used, for tooltips and screen readers. */
export function judgeInFull(judge: JudgeOfRun): string {
  return [judge.sentence, `${count(judge.calls)} calls, ${count(judge.failedCalls)} of them failed, ${count(judge.tokens)} tokens.`].filter(Boolean).join(" ");
}

/** Sorts cases: those that regressed or failed in the newest run come first, then by name. */
export function casesByNeed(suite: EvalSuite): SuiteCase[] {
  const need = (one: SuiteCase) => {
    const cell = one.cells[0];
    if (!cell) return 3;
    return cell.regressed ? 0 : cell.outcome === "Failed" ? 1 : cell.outcome === "Inconclusive" || cell.flaky ? 2 : 3;
  };
  return [...suite.cases].sort((one, two) => need(one) - need(two) || one.name.localeCompare(two.name));
}

/** Writes a cell as a sentence, for screen readers and tooltips. */
export function sentenceOf(cell: SuiteCell): string {
  const ended = cell.passed + cell.failed + cell.inconclusive;
  const parts = [`${cell.passed} of ${cell.asked} samples passed`];
  if (ended < cell.asked) parts.push(`${cell.asked - ended} have not ended`);
  if (cell.inconclusive > 0) parts.push(`${cell.inconclusive} inconclusive`);
  parts.push(...marksOf(cell).map((mark) => MARKS[mark].toLowerCase()));
  return [...parts, coverageOf(cell)].filter(Boolean).join(", ");
}

/** Writes how the tool calls of a cell were answered. */
export function coverageOf(cell: SuiteCell): string {
  const share = cell.coverage === null ? [] : [`coverage ${percent(cell.coverage)}`];
  return [...share, ...segments(cell.rungs).map((one) => `${one.count} ${one.word}`)].join(", ");
}
