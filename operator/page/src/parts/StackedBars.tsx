/** Draws values by day as stacked bars with axes. Loaded on demand: it brings the charting library. */
import { AxisBottom, AxisLeft } from "@visx/axis";
import { GridRows } from "@visx/grid";
import { scaleBand, scaleLinear } from "@visx/scale";
import { BarStack } from "@visx/shape";
import { isUnknown, labelled, tick, topOf, totalOf, type Chart } from "../logic/chart";
import { CHARTS } from "../words";
import type { Draw } from "./Plot";
import { EDGE, LABEL, useSize } from "./size";
import { textureOf } from "./Textures";

const TICKS = 4;
const GAP = 0.25;

export default function StackedBars({ chart, textures, place, onPlace }: Draw & { chart: Chart; textures: string }) {
  const { box, width, height } = useSize();
  const places = chart.buckets.map((_, at) => at);
  const x = scaleBand({ domain: places, range: [0, width], padding: GAP });
  const y = scaleLinear({ domain: [0, topOf(chart)], range: [height, 0], nice: TICKS });
  const ticks = chart.unit === "findings" ? y.ticks(TICKS).filter(Number.isInteger) : y.ticks(TICKS);
  return (
    <svg ref={box} className="plot-box" aria-hidden="true">
      {width > 0 && (
        <g transform={`translate(${EDGE.left},${EDGE.top})`}>
          <GridRows className="plot-grid" scale={y} width={width} tickValues={ticks} />
          {place !== null && <rect className="plot-chosen" x={x(place)} width={x.bandwidth()} height={height} />}
          <BarStack data={places} keys={chart.series.map((_, at) => at)} value={(at, key) => chart.series[key]?.values[at] ?? 0} x={(at) => at} xScale={x} yScale={y} color={() => ""}>
            {(stacks) =>
              stacks.map((stack) =>
                stack.bars.map((bar) => bar.height > 0 && <rect key={`${stack.key}/${bar.index}`} x={bar.x} y={bar.y} width={bar.width} height={bar.height} fill={textureOf(textures, Number(stack.key))} />),
              )
            }
          </BarStack>
          {places.filter((at) => isUnknown(chart, at)).map((at) => (
            <text key={at} className="plot-unknown" x={(x(at) ?? 0) + x.bandwidth() / 2} y={y(totalOf(chart, at) ?? 0) - EDGE.mark}>
              {CHARTS.unknownMark}
            </text>
          ))}
          <AxisLeft scale={y} tickValues={ticks} tickFormat={(value) => tick(chart.unit, Number(value))} hideAxisLine hideTicks axisClassName="plot-axis" />
          <AxisBottom scale={x} top={height} tickValues={labelled(places.length, width, LABEL)} tickFormat={(at) => chart.buckets[at]?.label ?? ""} hideTicks axisClassName="plot-axis" />
          {places.map((at) => (
            <rect key={at} className="plot-hit" x={at * x.step() + (x(0) ?? 0) - (x.step() - x.bandwidth()) / 2} width={x.step()} height={height} onPointerEnter={() => onPlace(at)} />
          ))}
        </g>
      )}
    </svg>
  );
}
