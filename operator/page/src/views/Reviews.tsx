/** Lists finished findings by the state of their reviews, and reviews several of them at once. */
import { useState } from "react";
import { post, Refused } from "../api/client";
import type { ReviewItem, ReviewPage, ReviewResults } from "../api/types";
import { isConfidence } from "../logic/confidence";
import { author } from "../logic/format";
import { investigationLink, reviewsLink } from "../logic/route";
import { REVIEW_STATES, stateOfReview, type ReviewState } from "../logic/review";
import { Calibration } from "../parts/Calibration";
import { ConfidenceTag } from "../parts/ConfidenceTag";
import { scope, useGet, useTitle, useWorld } from "../parts/context";
import { Outcome } from "../parts/Outcome";
import { Empty, Problem, Verdict } from "../parts/parts";
import { EMPTY, REVIEW, REVIEW_STATE_WORDS, REVIEW_VERDICTS, VIEWS } from "../words";

const SECONDS = 10;

export default function Reviews({ state }: { state: ReviewState }) {
  useTitle(VIEWS.reviews);
  const queue = useGet<ReviewPage>("/reviews", { namespace: scope(useWorld()), state, limit: 100 }, SECONDS);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const items = queue.value?.items;
  const picked = items?.filter((one) => chosen.has(one.uid)) ?? [];
  const choose = (one: ReviewItem, wanted: boolean) => setChosen((before) => new Set(wanted ? [...before, one.uid] : [...before].filter((uid) => uid !== one.uid)));
  return (
    <div className="view wide" aria-busy={queue.loading || undefined}>
      <h1>{VIEWS.reviews}</h1>
      <nav className="title-row" aria-label={REVIEW.states}>
        {REVIEW_STATES.map((one) => (
          <a key={one} href={reviewsLink(one)} aria-current={one === state ? "page" : undefined}>{REVIEW_STATE_WORDS[one]}</a>
        ))}
      </nav>
      {queue.error && <Problem error={queue.error} />}
      <Calibration />
      {picked.length > 0 && <Together items={picked} done={() => setChosen(new Set())} />}
      {items?.length === 0 && <Empty>{EMPTY.noReviews}</Empty>}
      {items && items.length > 0 && (
        <ul className="approval-list">
          {items.map((one) => (
            <li key={one.uid} className="card">
              <div className="title-row">
                <input type="checkbox" aria-label={`${REVIEW.choose} ${one.name}`} checked={chosen.has(one.uid)} onChange={(event) => choose(one, event.target.checked)} />
                <h2><a href={investigationLink(one.namespace, one.name)}>{one.name}</a></h2>
                {one.verdict && <Verdict verdict={one.verdict} state={stateOfReview(one.verdict)} />}
                {isConfidence(one.confidence) && <ConfidenceTag finding={{ confidence: one.confidence, shownConfidence: one.shownConfidence }} brief />}
                {one.outcome && <Outcome outcome={one.outcome} />}
              </div>
              <p>{one.finding}</p>
              <p className="hint">
                {one.namespace}, {one.alertType}, {one.chain}
                {one.claimedBy.length > 0 && <>; {REVIEW.claimedBy} {one.claimedBy.map(author).join(", ")}</>}
                {one.reviewedBy.length > 0 && <>; {REVIEW.reviewedBy} {one.reviewedBy.map(author).join(", ")}</>}
              </p>
            </li>
          ))}
        </ul>
      )}
      {queue.value?.continue && <p className="hint">{REVIEW.more}</p>}
    </div>
  );
}

/** Says the same about several findings, a request for each namespace; shows what was refused. */
function Together({ items, done }: { items: ReviewItem[]; done: () => void }) {
  const [problems, setProblems] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const say = async (said: { action: string; verdict?: string }) => {
    setBusy(true);
    const refused: string[] = [];
    for (const namespace of new Set(items.map((one) => one.namespace))) {
      const investigations = items.filter((one) => one.namespace === namespace).map((one) => one.name);
      try {
        for (let from = 0; from < investigations.length; from += 50) {
          const answer = await post<ReviewResults>(`/namespaces/${namespace}/reviews`, { ...said, investigations: investigations.slice(from, from + 50) });
          refused.push(...answer.items.flatMap((one) => (one.error ? [`${one.investigation}: ${one.error}`] : [])));
        }
      } catch (error) {
        refused.push(`${namespace}: ${error instanceof Refused ? error.message : String(error)}`);
      }
    }
    setProblems(refused);
    setBusy(false);
    if (refused.length === 0) done();
  };
  return (
    <section className="card" aria-label={REVIEW.together}>
      <p>{items.length} {REVIEW.chosen}</p>
      <div className="title-row">
        <button disabled={busy} onClick={() => void say({ action: "Claim" })}>{REVIEW.claim}</button>
        {(["Right", "Partly", "Wrong"] as const).map((verdict) => (
          <button key={verdict} disabled={busy} onClick={() => void say({ action: "Complete", verdict })}>{REVIEW_VERDICTS[verdict]}</button>
        ))}
        <button disabled={busy} onClick={() => void say({ action: "Reopen" })}>{REVIEW.reopen}</button>
      </div>
      {problems.map((one) => <p key={one} className="bad">{one}</p>)}
    </section>
  );
}
