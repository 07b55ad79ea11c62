/** Lists the recorded changes of the conditions of an object, the latest first. */
import { useState } from "react";
import type { ConfigurationItem, Transitions } from "../api/types";
import { moment } from "../logic/format";
import { EMPTY, HEALTH_OVER_TIME } from "../words";
import { useGet } from "./context";
import { Problem } from "./parts";

const SECONDS = 60;
const ROWS = 25;

export function TransitionTable({ item }: { item: ConfigurationItem }) {
  const [token, setToken] = useState<string | null>(null);
  const found = useGet<Transitions>("/transitions", { namespace: [item.namespace], kind: item.kind, name: item.name, limit: ROWS, continue: token }, SECONDS);
  const page = found.value;
  return (
    <>
      <h3>{HEALTH_OVER_TIME.changes}</h3>
      {found.error && <Problem error={found.error} />}
      {found.loading && !page && <p className="hint" aria-busy="true">{EMPTY.loading}</p>}
      {page?.items.length === 0 && <p className="hint">{HEALTH_OVER_TIME.noChanges}</p>}
      {page && page.items.length > 0 && (
        <table className="transitions">
          <thead>
            <tr>{[HEALTH_OVER_TIME.time, HEALTH_OVER_TIME.condition, HEALTH_OVER_TIME.change, HEALTH_OVER_TIME.why].map((name) => <th scope="col" key={name}>{name}</th>)}</tr>
          </thead>
          <tbody>
            {page.items.map((one) => (
              <tr key={`${one.uid}/${one.type}/${one.at}/${one.status}`}>
                <td><time dateTime={one.at}>{moment(one.at)}</time></td>
                <td>{one.type}{one.uid !== item.uid && <span className="hint"> {HEALTH_OVER_TIME.earlier}</span>}</td>
                <td>{one.was ?? HEALTH_OVER_TIME.first} → {one.status}{one.omitted > 0 && <span className="hint"> {HEALTH_OVER_TIME.omitted} {one.omitted}</span>}</td>
                <td><strong>{one.reason}</strong> {one.message}{one.address && !one.message.includes(one.address) && <> <code>{one.address}</code></>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {(token || page?.continue) && (
        <p className="row">
          {token && <button type="button" className="quiet" onClick={() => setToken(null)}>{HEALTH_OVER_TIME.newest}</button>}
          {page?.continue && <button type="button" className="quiet" onClick={() => setToken(page.continue)}>{HEALTH_OVER_TIME.older}</button>}
        </p>
      )}
    </>
  );
}
