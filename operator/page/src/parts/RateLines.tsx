/** Draws the share of passed samples of each suite over time. Loaded on demand: it brings the charting library. */
import { AxisBottom, AxisLeft } from "@visx/axis";
import { GridRows } from "@visx/grid";
import { scaleLinear } from "@visx/scale";
import { LinePath } from "@visx/shape";
import { labelled, tick, toneOf, type Bucket } from "../logic/chart";
import { passShare, type EvalResult, type SuiteCourse } from "../logic/usage";
import type { Draw } from "./Plot";
import { EDGE, LABEL, useSize } from "./size";
import { markOf } from "./Textures";

const SHARES = [0, 0.25, 0.5, 0.75, 1];
type Days = readonly (Bucket & { from: number })[];

/**
 * @param until the end of the time axis, in milliseconds
 * @param order all results in the order of the keys
 */
export default function RateLines({ courses, days, until, order, place, onPlace }: Draw & { courses: readonly SuiteCourse[]; days: Days; until: number; order: readonly EvalResult[] }) {
  const { box, width, height } = useSize();
  const x = scaleLinear({ domain: [days[0]?.from ?? 0, until], range: [0, width] });
  const y = scaleLinear({ domain: [0, 1], range: [height, 0] });
  const [atX, atY] = [(one: EvalResult) => x(Date.parse(one.finishedAt)), (one: EvalResult) => y(passShare(one))];
  const chosen = place === null ? undefined : order[place];
  return (
    <svg ref={box} className="plot-box" aria-hidden="true">
      {width > 0 && (
        <g transform={`translate(${EDGE.left},${EDGE.top})`}>
          <GridRows className="plot-grid" scale={y} width={width} tickValues={SHARES} />
          {courses.map(({ name, results }, at) => (
            <LinePath key={name} className={`plot-line ${toneOf({}, at)}`} data={[...results]} x={atX} y={atY} strokeDasharray={at === 0 ? undefined : `${2 + at * 2} 3`} />
          ))}
          {chosen && <circle className="plot-chosen" cx={atX(chosen)} cy={atY(chosen)} r={EDGE.mark * 2} />}
          {courses.map(({ results }, at) =>
            results.map((one) => (
              <path key={`${one.namespace}/${one.run}`} className={`plot-mark ${toneOf({}, at)}`} d={markOf(at)} transform={`translate(${atX(one)},${atY(one)})`} onPointerEnter={() => onPlace(order.indexOf(one))} />
            )),
          )}
          <AxisLeft scale={y} tickValues={SHARES} tickFormat={(value) => tick("percent", Number(value))} hideAxisLine hideTicks axisClassName="plot-axis" />
          <AxisBottom scale={x} top={height} tickValues={labelled(days.length, width, LABEL).map((at) => days[at]?.from ?? 0)} tickFormat={(from) => days.find((day) => day.from === Number(from))?.label ?? ""} hideTicks axisClassName="plot-axis" />
        </g>
      )}
    </svg>
  );
}
