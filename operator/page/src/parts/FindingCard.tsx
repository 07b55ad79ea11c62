/** Shows the cause, how sure the run is and why not more; what to do next; and the claims with their evidence. */
import type { Acted, Finding, Outcome as OutcomeWord } from "../api/types";
import { managers } from "../logic/approval";
import { findingAsMarkdown } from "../logic/markdown";
import type { NextSteps } from "../logic/nextSteps";
import { isGrounded, supportOf, writerOf } from "../logic/support";
import { ACTIONS, DOUBTS, SECTIONS, SUPPORT } from "../words";
import { ActedLines } from "./ActedMark";
import { ConfidenceTag } from "./ConfidenceTag";
import { DiffText } from "./DiffText";
import { Markdown } from "./Markdown";
import { Outcome } from "./Outcome";
import { Copy, Section } from "./parts";

type FindingProps = { finding: Finding; doubts: readonly string[]; actions?: readonly Acted[]; outcome?: OutcomeWord | null | undefined };

export function FindingCard({ finding, doubts, actions = [], outcome }: FindingProps) {
  return (
    <Section
      title={SECTIONS.finding}
      side={
        <>
          {outcome && <Outcome outcome={outcome} />}
          <ConfidenceTag finding={finding} />
          <Copy label={ACTIONS.copy} text={() => findingAsMarkdown(finding)} />
        </>
      }
    >
      <p className="finding-summary" data-answer="cause">{finding.summary}</p>
      <ActedLines actions={actions} />
      {doubts.length > 0 && (
        <div className="doubts">
          <strong>{finding.confidence === "High" ? DOUBTS.but : DOUBTS.why}</strong>
          <ul>{doubts.map((one) => <li key={one}>{one}</li>)}</ul>
        </div>
      )}
    </Section>
  );
}

export function NextStepsCard({ steps, changes = [] }: { steps: NextSteps; changes?: Finding["changesForGit"] }) {
  return (
    <Section title={SECTIONS.next} answer="next">
      {steps.text && <Markdown text={steps.text} />}
      {steps.commands.length > 0 && (
        <ul className="commands">
          {steps.commands.map((command) => (
            <li key={command}><code>{command}</code> <Copy label={ACTIONS.copy} text={() => command} /></li>
          ))}
        </ul>
      )}
      {changes.map((change, place) => (
        <div key={place}>
          <h3>{SECTIONS.changeForGit}</h3>
          <p>{managers(change)}</p>
          <DiffText text={change.patch} label={SECTIONS.changeForGit} />
        </div>
      ))}
    </Section>
  );
}

type EvidenceProps = { finding: Finding; onCitation: (call: string, quote: string) => void };

/** A citation leads to the call that it quotes, where the quote is marked. */
export function EvidenceCard({ finding, onCitation }: EvidenceProps) {
  return (
    <Section title={SECTIONS.evidence}>
      <ul className="claims">
        {finding.claims.map((claim, place) => (
          <li key={place} className={isGrounded(claim) ? "supported" : "unsupported"}>
            <span className="mark-of">{isGrounded(claim) ? "✓" : "⚠"}</span>
            <div>
              <span className="visually-hidden">{SUPPORT[supportOf(claim)]}: </span>
              {claim.text}
              {supportOf(claim) === "contradicted" && <p className="hint">{SUPPORT.contradicted}</p>}
              {supportOf(claim) === "ungrounded" && (
                <p className="hint">{SUPPORT.ungrounded}: {claim.ungrounded.join(", ")}</p>
              )}
              {claim.citations.map((citation, number) => {
                const where = [citation.agent, citation.tool].filter(Boolean).join(" · ") || citation.callId;
                const call = citation.interaction;
                return (
                  <blockquote key={number} className={citation.supported ? "" : "bad-quote"}>
                    “{citation.quote}”{" "}
                    {call ? (
                      <button type="button" className="link" onClick={() => onCitation(call, citation.quote)}>{where}</button>
                    ) : (
                      <span className="hint">{where}</span>
                    )}
                    {writerOf(citation) && <span className="hint"> {writerOf(citation)}</span>}
                    {citation.reason && <span className="bad"> {citation.reason}</span>}
                  </blockquote>
                );
              })}
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}
