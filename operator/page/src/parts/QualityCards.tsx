/** Shows the quality of findings over time: reviews by people, recurrences, and evaluations. */
import type { Quality } from "../api/types";
import { isEmpty, sumOf } from "../logic/chart";
import { outcomeChart, verdictChart } from "../logic/usage";
import { percent } from "../logic/suite";
import { COLUMNS, CONFIDENCE, QUALITY, REVIEW_VERDICTS, SECTIONS } from "../words";
import { DayChart } from "./DayChart";
import { EvalChart } from "./EvalChart";
import { Empty, Section } from "./parts";

export function QualityCards({ quality, until }: { quality: Quality; until: number }) {
  return (
    <>
      <Section title={SECTIONS.evaluations}><EvalChart quality={quality} until={until} /></Section>
      <Section title={SECTIONS.verdicts}><Verdicts quality={quality} /></Section>
      <Section title={SECTIONS.outcomes}><Outcomes quality={quality} /></Section>
    </>
  );
}

function Verdicts({ quality }: { quality: Quality }) {
  const chart = verdictChart(quality);
  if (!chart) return <p className="hint">{QUALITY.mayNotReviews}</p>;
  if (isEmpty(chart)) return <Empty>{QUALITY.noVerdicts}</Empty>;
  const [findings, reviewed] = [sum(quality.findings), sum(chart.series.flatMap((one) => one.values))];
  return (
    <>
      <p className="hint">{reviewed} {QUALITY.ofReviewed} {findings} {QUALITY.reviewed} ({percent(reviewed / Math.max(1, findings))})</p>
      <DayChart title={SECTIONS.verdicts} chart={chart} />
      <ByConfidence quality={quality} />
    </>
  );
}

function ByConfidence({ quality }: { quality: Quality }) {
  const found = quality.reviews?.byConfidence ?? [];
  if (found.length === 0) return null;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={COLUMNS.confidence}>
      <table>
        <thead>
          <tr>
            <th scope="col">{COLUMNS.confidence}</th>
            {Object.values(REVIEW_VERDICTS).map((name) => <th key={name} scope="col" className="number">{name}</th>)}
            <th scope="col" className="number">{QUALITY.right}</th>
          </tr>
        </thead>
        <tbody>
          {found.map(({ confidence, right, partly, wrong }) => (
            <tr key={confidence}>
              <th scope="row">{CONFIDENCE[confidence]}</th>
              {[right, partly, wrong].map((value, at) => <td key={at} className="number">{value}</td>)}
              <td className="number">{percent(right / (right + partly + wrong))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Outcomes({ quality }: { quality: Quality }) {
  const chart = outcomeChart(quality);
  if (isEmpty(chart)) return <Empty>{QUALITY.noOutcomes}</Empty>;
  const known = sum(chart.series.flatMap((one) => one.values));
  const recurred = sum(quality.outcomes.map((day) => day.recurred));
  return (
    <>
      <p className="hint">{recurred} {QUALITY.ofReviewed} {known} {QUALITY.recurred} ({percent(recurred / Math.max(1, known))})</p>
      <DayChart title={SECTIONS.outcomes} chart={chart} />
    </>
  );
}

function sum(values: readonly (number | null)[]): number {
  return sumOf(values) ?? 0;
}
