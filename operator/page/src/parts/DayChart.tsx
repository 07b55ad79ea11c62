/** Shows values by day: bars, a legend that contains the selected values, and on demand a table. */
import { lazy, useId, useState } from "react";
import { describeBucket, describeChart, valuesOf, written, writtenSum, type Chart } from "../logic/chart";
import { CHARTS, USAGE } from "../words";
import { Plot } from "./Plot";
import { Swatch, Textures } from "./Textures";

const StackedBars = lazy(() => import("./StackedBars"));

export function DayChart({ title, chart }: { title: string; chart: Chart }) {
  const id = useId();
  const [place, setPlace] = useState<number | null>(null);
  const valueOf = (values: readonly (number | null)[]) => (place === null ? writtenSum(chart.unit, values) : written(chart.unit, values[place] ?? null));
  const all = place === null ? chart.series.flatMap((one) => one.values) : valuesOf(chart, place);
  return (
    <figure className="chart">
      <Textures id={id} series={chart.series} />
      <Plot label={describeChart(title, chart)} places={chart.buckets.length} place={place} onPlace={setPlace} describe={(at) => describeBucket(chart, at)}>
        <StackedBars chart={chart} textures={id} place={place} onPlace={setPlace} />
      </Plot>
      <figcaption>
        <p className="chart-at">
          {place === null ? CHARTS.whole : chart.buckets[place]?.title} <strong>{writtenSum(chart.unit, all)}</strong>
        </p>
        <ul className="chart-legend">
          {chart.series.map((one, at) => (
            <li key={one.name}>
              <Swatch id={id} place={at} />
              <span className="chart-name">{one.name}</span>
              <span className="number">{valueOf(one.values)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <AsTable title={title} chart={chart} />
    </figure>
  );
}

function AsTable({ title, chart }: { title: string; chart: Chart }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{CHARTS.table}</summary>
      {open && (
        <div className="scroll chart-table" tabIndex={0} role="region" aria-label={`${title}, ${CHARTS.table}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{CHARTS.day}</th>
                {chart.series.map((one) => <th key={one.name} scope="col" className="number">{one.name}</th>)}
                {chart.series.length > 1 && <th scope="col" className="number">{USAGE.sum}</th>}
              </tr>
            </thead>
            <tbody>
              {chart.buckets.map((bucket, at) => (
                <tr key={bucket.title}>
                  <th scope="row">{bucket.title}</th>
                  {chart.series.map((one) => <td key={one.name} className="number">{written(chart.unit, one.values[at] ?? null)}</td>)}
                  {chart.series.length > 1 && <td className="number">{writtenSum(chart.unit, valuesOf(chart, at))}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
