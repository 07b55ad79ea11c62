/** Shows the finding with its claims and citations; a citation links to the call that it quotes. */
import type { Finding } from "../api/types";
import { managers } from "../logic/approval";
import { findingAsMarkdown } from "../logic/markdown";
import { isGrounded, supportOf, writerOf } from "../logic/support";
import { ACTIONS, CONFIDENCE, SECTIONS, SUPPORT } from "../words";
import { DiffText } from "./DiffText";
import { Copy, Section } from "./parts";

export function FindingCard({ finding, onCitation }: { finding: Finding; onCitation: (call: string) => void }) {
  return (
    <Section
      title={SECTIONS.finding}
      side={
        <>
          <span className={`confidence c-${finding.confidence}`}>{CONFIDENCE[finding.confidence]}</span>
          <Copy label={ACTIONS.copy} text={() => findingAsMarkdown(finding)} />
        </>
      }
    >
      <p className="finding-summary">{finding.summary}</p>
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
                      <button type="button" className="link" onClick={() => onCitation(call)}>{where}</button>
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
      {finding.notes.map((note) => (
        <p key={note} className="hint">{note}</p>
      ))}
      {finding.changesForGit?.map((change, place) => (
        <div key={place}>
          <h3>{SECTIONS.changeForGit}</h3>
          <p>{managers(change)}</p>
          <DiffText text={change.patch} label={SECTIONS.changeForGit} />
        </div>
      ))}
    </Section>
  );
}
