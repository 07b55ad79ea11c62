/** Shows what judges of suites say about the quality of an investigation, and of the investigations of a suite. */
import { useState } from "react";
import { post, Refused } from "../api/client";
import type { ScoreRequested, ScoresShown, ScoreShown, SuiteScoresShown } from "../api/types";
import { cost, count, dollars } from "../logic/format";
import { suiteLink } from "../logic/route";
import { shownScores, stateOfPoints, wordOfScore } from "../logic/score";
import { SCORE, SECTIONS } from "../words";
import { useGet } from "./context";
import { Empty, Section, Verdict } from "./parts";

const SECONDS = 15;

/** Shows the scores of one investigation; nothing without one, or for who may not read them. */
export function ScoreBox({ namespace, name, uid }: { namespace: string; name: string; uid: string }) {
  const scores = useGet<ScoresShown>(`/namespaces/${namespace}/investigations/${name}/score`, { uid }, SECONDS);
  const shown = shownScores(scores.value?.scores ?? []);
  if (shown.length === 0) return null;
  return (
    <Section title={SECTIONS.score} side={<span className="hint">{SCORE.advice}</span>}>
      <ul className="plain-list">
        {shown.map((one) => <li key={one.suiteUid}><OneScore score={one} namespace={namespace} /></li>)}
      </ul>
      <Again path={`/namespaces/${namespace}/investigations/${name}/score`} word={SCORE.again} />
    </Section>
  );
}

function OneScore({ score, namespace }: { score: ScoreShown; namespace: string }) {
  return (
    <>
      <div className="score-head">
        <Verdict verdict={score.points === null ? wordOfScore(score.state) : `${score.points} ${SCORE.of100}`} state={stateOfPoints(score.points)} />
        <span className="hint">{SCORE.bySuite} <a href={suiteLink(namespace, score.suite)}>{score.suite}</a>{score.points !== null && !score.current && <>, {SCORE.earlier}</>}{score.request !== null && <>, {SCORE.asked}</>}</span>
        {score.tags.map((tag) => <span key={tag} className="tag">{tag}</span>)}
        <span className="spring" />
        <span className="hint">{count(score.tokens)} tokens, {cost(score)}</span>
      </div>
      {score.reason && <p>{score.reason}</p>}
      {score.problem && <p className="hint">{score.problem}</p>}
      {score.missingTools.map((tool) => <p key={tool.name} className="missing-tool">{SCORE.missing} <code>{tool.name}</code>: {tool.why}</p>)}
    </>
  );
}

/** Shows what the scores of a suite tell by chain; nothing for a suite that does not score. */
export function SuiteScores({ namespace, name }: { namespace: string; name: string }) {
  const path = `/namespaces/${namespace}/evalsuites/${name}/scores`;
  const loaded = useGet<SuiteScoresShown>(path, {}, SECONDS);
  const found = loaded.value;
  if (!found?.scoring) return null;
  const budget = found.tokensBudget === null ? "" : ` / ${count(found.tokensBudget)}`;
  const money = found.costUSDBudget === null ? "" : `, ${dollars(found.costUSDToday ?? 0)} / ${dollars(found.costUSDBudget)}`;
  return (
    <Section title={SECTIONS.score} side={<span className="hint">{SCORE.advice}</span>}>
      <p className="hint">{found.waiting} {SCORE.waiting}, {found.failed} {SCORE.failed}; {SCORE.today} {count(found.tokensToday)}{budget}{money}</p>
      {found.chains.length === 0 && <Empty>{SCORE.none}</Empty>}
      <ul className="plain-list">
        {found.chains.map((chain) => (
          <li key={chain.chain}>
            <div className="score-head">
              <strong>{chain.chain}</strong>
              <Verdict verdict={`${SCORE.mean} ${chain.mean}`} state={stateOfPoints(chain.mean)} />
              <span className="hint">{chain.scores} {SCORE.scored}, {SCORE.lowest} {chain.lowest}</span>
              {chain.tags.map((one) => <span key={one.tag} className="tag">{one.tag} {one.scores}</span>)}
            </div>
            {chain.missingTools.map((tool) => <p key={tool.name} className="missing-tool">{SCORE.missing} <code>{tool.name}</code> ({tool.scores}): {tool.why}</p>)}
          </li>
        ))}
      </ul>
      <Again path={path} word={SCORE.days} body={{ days: 7 }} />
    </Section>
  );
}

function Again({ path, word, body }: { path: string; word: string; body?: object }) {
  const [busy, setBusy] = useState(false);
  const [told, setTold] = useState<string | null>(null);
  const ask = async () => {
    setBusy(true);
    try {
      await post<ScoreRequested>(path, body);
      setTold(SCORE.askedFor);
    } catch (error) {
      setTold(error instanceof Refused ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <div className="title-row">
      <button disabled={busy} onClick={() => void ask()}>{word}</button>
      {told && <p role="status" className="hint">{told}</p>}
    </div>
  );
}
