/** Shows what people said about a finding, and takes the verdict of the user. */
import { useState } from "react";
import { post, Refused } from "../api/client";
import type { ReviewResults, ReviewShown } from "../api/types";
import { author } from "../logic/format";
import { readRootCause, stateOfReview } from "../logic/review";
import { REVIEW, REVIEW_STATE_WORDS, REVIEW_VERDICTS, SECTIONS } from "../words";
import { useGet } from "./context";
import { Field, Section, Verdict } from "./parts";

const SECONDS = 10;

export function ReviewBox({ namespace, name, uid }: { namespace: string; name: string; uid: string }) {
  const review = useGet<ReviewShown>(`/namespaces/${namespace}/investigations/${name}/review`, { uid }, SECONDS);
  const shown = review.value;
  if (!shown?.reviewable) return null; // who may not read reviews sees none
  return (
    <Section title={SECTIONS.review} side={shown.verdict ? <Verdict verdict={shown.verdict} state={stateOfReview(shown.verdict)} /> : <span className="hint">{wordOf(shown.state)}</span>}>
      {shown.activity.length > 0 && (
        <ul className="plain-list">
          {shown.activity.map((one, place) => (
            <li key={place}>
              {author(one.author)} <span className="hint">{one.action}{one.verdict && <> {one.verdict}</>}{one.rootCause && <>, {one.rootCause.kind}/{one.rootCause.name}</>}{one.verdict && !one.counted && <> ({REVIEW.past})</>}</span>
              {one.note && <p>{one.note}</p>}
            </li>
          ))}
        </ul>
      )}
      <Say namespace={namespace} name={name} />
    </Section>
  );
}

function wordOf(state: string): string {
  return (REVIEW_STATE_WORDS as Record<string, string>)[state] ?? state;
}

function Say({ namespace, name }: { namespace: string; name: string }) {
  const [cause, setCause] = useState("");
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const [told, setTold] = useState<string | null>(null);
  const say = async (action: string, verdict?: string) => {
    const rootCause = readRootCause(cause);
    if (verdict && rootCause === null) return setTold(REVIEW.causeForm);
    setBusy(true);
    try {
      const body = { action, investigations: [name], ...(verdict ? { verdict, ...(rootCause ? { rootCause } : {}) } : {}), ...(note.trim() ? { note: note.trim() } : {}) };
      const answer = await post<ReviewResults>(`/namespaces/${namespace}/reviews`, body);
      setTold(answer.items[0]?.error ?? REVIEW.stored);
    } catch (error) {
      setTold(error instanceof Refused ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <div className="review-box">
      <Field label={REVIEW.cause}><input value={cause} maxLength={320} placeholder="Deployment/checkout" onChange={(event) => setCause(event.target.value)} /></Field>
      <Field label={REVIEW.note}><textarea value={note} maxLength={4096} rows={2} onChange={(event) => setNote(event.target.value)} /></Field>
      <div className="actions">
        <button disabled={busy} onClick={() => void say("Claim")}>{REVIEW.claim}</button>
        {(["Right", "Partly", "Wrong"] as const).map((verdict) => (
          <button key={verdict} disabled={busy} onClick={() => void say("Complete", verdict)}>{REVIEW_VERDICTS[verdict]}</button>
        ))}
        <button disabled={busy} onClick={() => void say("Reopen")}>{REVIEW.reopen}</button>
      </div>
      {told && <p role="status" className="hint">{told}</p>}
    </div>
  );
}
