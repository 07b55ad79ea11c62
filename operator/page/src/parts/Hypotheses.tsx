/** Shows the sub-agents of a run as a tree: under each agent those that it dispatched, with hypothesis, verdict and evidence. */
import type { Dispatching, SubAgent } from "../logic/hypotheses";
import { HYPOTHESES } from "../words";
import { Section } from "./parts";

type Links = { onEvent: (event: string) => void; onCitation: (call: string, quote: string) => void };

const MARKS: Record<string, string> = { Supported: "✓", Refuted: "✗", Unresolved: "?" };

export function Hypotheses({ found, ...links }: { found: readonly Dispatching[] } & Links) {
  return (
    <Section title={HYPOTHESES.title}>
      <ul className="claims">
        {found.map((one) => (
          <li key={one.execution}>
            <div>
              <strong>{one.agent}</strong>
              <ul className="claims">
                {one.subAgents.map((sub) => <Hypothesis key={sub.execution} sub={sub} {...links} />)}
              </ul>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Hypothesis({ sub, onEvent, onCitation }: { sub: SubAgent } & Links) {
  const held = sub.verdict === "Supported" || sub.verdict === "Refuted";
  return (
    <li className={held ? "supported" : "unsupported"}>
      <span className="mark-of" aria-hidden="true">{sub.verdict ? (MARKS[sub.verdict] ?? "?") : "…"}</span>
      <div>
        {sub.hypothesis ?? sub.task}
        <p className="hint">
          <button type="button" className="link" onClick={() => onEvent(sub.last)}>{sub.id}</button>
          {sub.hypothesis && <> {sub.verdict ?? HYPOTHESES.none}{sub.why && `: ${sub.why}`}</>}
        </p>
        {sub.hypothesis && <p className="hint">{HYPOTHESES.task}: {sub.task}</p>}
        {sub.cited.map((one, place) => {
          const call = one.call;
          return (
            <blockquote key={place} className={one.supported ? "" : "bad-quote"}>
              “{one.quote}”{" "}
              {call ? (
                <button type="button" className="link" onClick={() => onCitation(call, one.quote)}>{one.where}</button>
              ) : (
                <span className="hint">{one.where}</span>
              )}
              {one.reason && <span className="bad"> {one.reason}</span>}
            </blockquote>
          );
        })}
      </div>
    </li>
  );
}
