/** Draws the series of a metric that a result contains, each as a line chart with its onset. */
import { CHART, describe, lineOf, seriesOf, timeOf, written, type Series } from "../logic/series";
import { CHARTS } from "../words";

export function SeriesCharts({ text }: { text: string }) {
  const all = seriesOf(text);
  const hidden = all.length - CHART.most;
  return (
    <>
      {all.slice(0, CHART.most).map((series, place) => (
        <SeriesChart key={place} series={series} />
      ))}
      {hidden > 0 && <p className="hint">{`${CHARTS.notDrawn}: ${hidden}`}</p>}
    </>
  );
}

function SeriesChart({ series }: { series: Series }) {
  const line = lineOf(series);
  return (
    <figure className="series">
      <figcaption title={series.title}>
        <code>{series.title}</code>
        {series.onset !== null && (
          <span className="series-onset">
            {CHARTS.onset} {timeOf(series.onset)}
          </span>
        )}
      </figcaption>
      <div className="series-plot">
        <div className="series-axis" aria-hidden="true">
          <span>{written(line.top, series.unit)}</span>
          {line.bottom !== line.top && <span>{written(line.bottom, series.unit)}</span>}
        </div>
        <svg viewBox={`0 0 ${CHART.width} ${CHART.height}`} preserveAspectRatio="none" role="img" aria-label={describe(series)}>
          {line.segments.map((points, place) => (
            // A single value between two gaps has no length: a round end makes it a dot.
            <polyline key={place} points={(points.length === 1 ? [...points, ...points] : points).map((point) => point.join(",")).join(" ")} />
          ))}
          {line.onsetX !== null && <line className="onset" x1={line.onsetX} x2={line.onsetX} y1={0} y2={CHART.height} />}
        </svg>
      </div>
      <div className="series-times" aria-hidden="true">
        <span>{line.from}</span>
        <span>{line.to}</span>
      </div>
    </figure>
  );
}
