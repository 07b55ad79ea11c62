/** Shows the changes around the onset of an incident, the first-ranked candidate, and signals of rules with their quotes. */
import type { Change, Changes, Signal } from "../api/types";
import { firstOf, isEmpty, marksOf, nameOf, relative, SHOWN } from "../logic/changes";
import { clock, moment, wordOf } from "../logic/format";
import { ACTIONS, CERTAINTY, CHANGES, EMPTY, ORDERS, SECTIONS } from "../words";
import { Section } from "./parts";
import { useWhole } from "./printing";

type Props = {
  changes: Changes;
  /** Shows the tool call that found the changes or the signals; null: it is not in the timeline. */
  onChanges: (() => void) | null;
  onSignals: (() => void) | null;
};

export function ChangesStrip({ changes, onChanges, onSignals }: Props) {
  const [whole, setWhole] = useWhole();
  if (isEmpty(changes)) return null;
  const first = firstOf(changes);
  const others = changes.changes.filter((one) => one !== first);
  const shown = whole ? others : others.slice(0, SHOWN - 1);
  const signals = whole ? changes.signals : changes.signals.slice(0, SHOWN);
  const hidden = others.length - shown.length + changes.signals.length - signals.length;
  const notRead = Object.entries(changes.notRead).map(([kind, reason]) => `${kind} (${reason})`);
  return (
    <Section
      title={changes.onset ? SECTIONS.changes : SECTIONS.changesByTime}
      side={changes.onset && <span className="hint" title={changes.onsetSource}>{CHANGES.onset} <time dateTime={changes.onset} title={moment(changes.onset)}>{clock(changes.onset)}</time></span>}
    >
      {changes.changes.length > 0 ? <Axis changes={changes} /> : <p className="hint">{EMPTY.noChanges}</p>}
      {first && (
        <p className="first-candidate">
          <span className="tag t-candidate">{CHANGES.first}</span> <ChangeText change={first} onset={changes.onset} onShow={onChanges} />
        </p>
      )}
      {signals.length > 0 && (
        <ul className="signals" aria-label={CHANGES.signals}>
          {signals.map((signal, place) => (
            <SignalRow key={place} signal={signal} onShow={onSignals} />
          ))}
        </ul>
      )}
      {shown.length > 0 && (
        <ul className="changes" aria-label={CHANGES.others}>
          {shown.map((change, place) => (
            <li key={place} className={`o-${change.order.toLowerCase()}`}>
              <span className={`tag t-${change.order.toLowerCase()}`}>{wordOf(ORDERS, change.order) ?? change.order}</span>{" "}
              <ChangeText change={change} onset={changes.onset} onShow={onChanges} />
            </li>
          ))}
        </ul>
      )}
      {(hidden > 0 || whole) && (
        <button type="button" className="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? ACTIONS.less : `${ACTIONS.more}: ${hidden}`}
        </button>
      )}
      {whole && changes.leftOut > 0 && <p className="hint">{CHANGES.leftOut}: {changes.leftOut}</p>}
      {notRead.length > 0 && <p className="hint">{CHANGES.notRead}: {notRead.join(", ")}</p>}
    </Section>
  );
}

function ChangeText({ change, onset, onShow }: { change: Change; onset: string | null; onShow: (() => void) | null }) {
  const name = nameOf(change.object);
  return (
    <>
      <strong>{change.type}</strong>{" "}
      {onShow ? <button type="button" className="link" onClick={onShow}>{name}:</button> : <span>{name}:</span>} {change.summary}{" "}
      <span className="hint">
        <span className="unbroken">· <time dateTime={change.at} title={moment(change.at)}>{relative(change.at, onset) || clock(change.at)}</time></span>
        {change.manager && `, ${CHANGES.by} ${change.manager}`}
      </span>
    </>
  );
}

function SignalRow({ signal, onShow }: { signal: Signal; onShow: (() => void) | null }) {
  return (
    <li>
      <span className={`tag t-${signal.certainty.toLowerCase()}`}>{wordOf(CERTAINTY, signal.certainty) ?? signal.certainty}</span>{" "}
      {signal.text}{signal.count > 1 && <span className="hint"> ×{signal.count}</span>}
      <blockquote>
        “{signal.quote}”{" "}
        {onShow ? <button type="button" className="link" onClick={onShow}>{signal.rule}</button> : <span className="hint">{signal.rule}</span>}
      </blockquote>
    </li>
  );
}

/** Draws changes as points on a line, and the onset as a bar across it. The lists below contain the same for readers. */
function Axis({ changes }: { changes: Changes }) {
  const { onset, marks } = marksOf(changes);
  return (
    <svg className="axis" width="100%" height="20" aria-hidden="true">
      <line className="axis-line" x1="0" x2="100%" y1="10" y2="10" />
      {onset !== null && <line className="axis-onset" x1={`${onset}%`} x2={`${onset}%`} y1="0" y2="20" />}
      {marks.map((mark, place) => (
        <circle key={place} className={`m-${mark.order.toLowerCase()}`} cx={`${mark.at}%`} cy="10" r={place === 0 ? 6 : 4} />
      ))}
    </svg>
  );
}
