/** Shows how often findings were right, by chain and by the confidence that they claimed. */
import type { CalibratedClass, CalibratedChain, CalibrationShown } from "../api/types";
import { doubtedChains, interval, share } from "../logic/calibration";
import { CALIBRATION, COLUMNS } from "../words";
import { scope, useGet, useWorld } from "./context";

const SECONDS = 60;

/** One line that opens; open where a chain is doubted. Nothing without a verdict, or for who may not read it. */
export function Calibration() {
  const found = useGet<CalibrationShown>("/calibration", { namespace: scope(useWorld()), limit: 50 }, SECONDS).value;
  if (!found || found.items.length === 0) return null;
  const doubted = doubtedChains(found.items);
  return (
    <section className="card" aria-label={CALIBRATION.title}>
      <details open={doubted.length > 0}>
        <summary>
          <strong>{CALIBRATION.title}</strong> <span className="hint">{doubted.length > 0 ? `${CALIBRATION.doubted} ${doubted.map((one) => one.chain).join(", ")}` : CALIBRATION.none}</span>
        </summary>
        <div className="scroll" tabIndex={0} role="region" aria-label={CALIBRATION.title}>
          <table>
            <thead>
              <tr>
                {[COLUMNS.chain, COLUMNS.confidence].map((name) => <th scope="col" key={name}>{name}</th>)}
                <th scope="col" className="number">{CALIBRATION.right}</th>
                <th scope="col">{CALIBRATION.interval}</th>
                {[CALIBRATION.newest, CALIBRATION.before].map((name) => <th scope="col" key={name} className="number">{name}</th>)}
              </tr>
            </thead>
            <tbody>
              {found.items.flatMap((chain) => chain.classes.map((one, place) => <Row key={`${chain.namespace}/${chain.chain}/${one.confidence}`} chain={chain} one={one} first={place === 0} floor={found.floor} />))}
            </tbody>
          </table>
        </div>
        {doubted.map((one) => <p key={`${one.namespace}/${one.chain}`} className="note">{one.chain}: {one.message}</p>)}
        <p className="hint">{CALIBRATION.counts}{found.continue && ` ${CALIBRATION.more}`}</p>
      </details>
    </section>
  );
}

function Row({ chain, one, first, floor }: { chain: CalibratedChain; one: CalibratedClass; first: boolean; floor: number }) {
  const doubted = one.confidence === "High" && chain.calibrated === false;
  return (
    <tr>
      <td className="calibrated">{first && <>{chain.chain} <span className="hint">{chain.namespace}</span></>}</td>
      <td><span className={`confidence c-${doubted ? "doubted" : one.confidence}`}>{one.confidence}</span></td>
      <td className="number">{one.right} {CALIBRATION.of} {one.total}</td>
      <td>
        <span className="interval-cell">
          <svg className="interval" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect className={doubted ? "below" : undefined} x={one.low * 100} width={Math.max(1, (one.high - one.low) * 100)} height="6" />
            {one.confidence === "High" && <line x1={floor * 100} x2={floor * 100} y1="0" y2="6" />}
          </svg>
          <span className="number">{interval(one)}</span>
        </span>
      </td>
      <td className="number">{share(one.recent)}{one.drifted && <strong className="bad"> {CALIBRATION.worse}</strong>}</td>
      <td className="number">{share(one.before)}</td>
    </tr>
  );
}
