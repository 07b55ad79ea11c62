/** Shows a suite as a table of case by revision, the chains that must pass it, and the samples of the selected cell. */
import { useEffect, useRef } from "react";
import type { EvalRun, EvalSuite, MeasuredRun, SuiteCell } from "../api/types";
import { ago, cost, count, counted, moment } from "../logic/format";
import { investigationLink, suiteLink } from "../logic/route";
import { casesByNeed, coverageOf, judgeInFull, judgeOf, marksOf, passRate, percent, sentenceOf, signOf, stateOfOutcome, stateOfVerdict } from "../logic/suite";
import { go, useGet, useNow, useTitle } from "../parts/context";
import { Empty, Problem, Section, Verdict } from "../parts/parts";
import { RungBar, RungLegend } from "../parts/Rungs";
import { SuiteScores } from "../parts/Scores";
import { ACTIONS, COLUMNS, EMPTY, MARKS, PROMOTION, SECTIONS, VIEWS } from "../words";

type Props = { namespace: string; name: string; run: string | null; kase: string | null };

const SECONDS = 10;

export default function SuitePage({ namespace, name, run, kase }: Props) {
  useTitle(`Suite ${name}`);
  const loaded = useGet<EvalSuite>(`/namespaces/${namespace}/evalsuites/${name}`, {}, SECONDS);
  const found = loaded.value;
  const now = useNow(false);
  return (
    <div className="view wide" aria-busy={loaded.loading || undefined}>
      <div className="title-row">
        <h1>{namespace}/{name}</h1>
        {found?.suite.lastVerdict && <Verdict verdict={found.suite.lastVerdict} state={stateOfVerdict(found.suite.lastVerdict)} />}
        <span className="spring" />
        <a href="#/suites">{VIEWS.suites}</a>
      </div>
      {loaded.error && <Problem error={loaded.error} />}
      {found && (
        <>
          {found.suite.description && <p>{found.suite.description}</p>}
          <div className="facts">
            <span>{counted(found.suite.cases, "cases")}, {counted(found.suite.samples, "samples")}</span>
            <span>at least {percent(found.passRateMin)} of the cases must pass</span>
            <span>{found.confidentWrongMax === 0 ? PROMOTION.noneWrong : `at most ${counted(found.confidentWrongMax, "mayBeWrong")}`}</span>
          </div>
          {found.suite.conditions.filter((one) => one.status === "False" && !(one.type === "Scoring" && one.reason === "Disabled")).map((one) => (
            <div key={one.type} className="problem soft">{one.type}: {one.reason}. {one.message}</div>
          ))}
          <Chains suite={found} />
          <Waiting suite={found} />
          <Section title={SECTIONS.caseByRevision} side={<RungLegend />}>
            {found.runs[0]?.summary && <p><strong>{found.runs[0].name}</strong>: {found.runs[0].summary}</p>}
            {found.runs.length === 0 ? <Empty>{EMPTY.noRuns}</Empty> : <Table suite={found} run={run} kase={kase} now={now} />}
            {found.omittedCases > 0 && <p className="hint">{counted(found.omittedCases, "cases")} of older runs not shown</p>}
          </Section>
          {run && <Samples namespace={namespace} suite={name} run={run} kase={kase} />}
          <SuiteScores namespace={namespace} name={name} />
        </>
      )}
    </div>
  );
}

function Chains({ suite }: { suite: EvalSuite }) {
  if (!suite.chains || suite.chains.length === 0) return null;
  return (
    <Section title={SECTIONS.promotion}>
      <ul className="plain-list">
        {suite.chains.map((chain) => (
          <li key={chain.name}>
            <strong>{chain.name}</strong>{" "}
            <span className={chain.promoted === false ? "bad" : "hint"}>{chain.promoted === false ? PROMOTION.held : PROMOTION.serves}{chain.reason && `: ${chain.reason}`}</span>
            <p className="hint">
              {PROMOTION.policy} {chain.policy}
              {chain.servingRevision && <>; {PROMOTION.serving} <code>{chain.servingRevision}</code></>}
              {chain.candidateRevision && <>; {PROMOTION.candidate} <code>{chain.candidateRevision}</code></>}
            </p>
            {chain.message && <p>{chain.message}</p>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Waiting({ suite }: { suite: EvalSuite }) {
  return suite.waiting.map((one) => (
    <div key={one.name} className="problem soft">
      {one.name} waits{one.reason && `: ${one.reason}`}. {one.message}
    </div>
  ));
}

function Table({ suite, run, kase, now }: { suite: EvalSuite; run: string | null; kase: string | null; now: number }) {
  const { namespace, name } = suite.suite;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={SECTIONS.caseByRevision}>
      <table className="suite-table">
        <thead>
          <tr>
            <th scope="col">{COLUMNS.case}</th>
            {suite.runs.map((one) => (
              <th scope="col" key={one.uid}>
                <Head run={one} suite={suite} now={now} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {casesByNeed(suite).map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}{!row.inSuite && <span className="hint"> ({PROMOTION.removed})</span>}</th>
              {row.cells.map((cell, place) => {
                const column = suite.runs[place];
                if (!column) return null;
                const chosen = column.name === run && row.name === kase;
                return (
                  <td key={column.uid}>
                    {cell ? <Cell cell={cell} label={`${row.name}, ${column.name}`} chosen={chosen} onChoose={() => go(suiteLink(namespace, name, column.name, row.name), true)} /> : <span className="hint">–</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head({ run, suite, now }: { run: MeasuredRun; suite: EvalSuite; now: number }) {
  const serving = suite.chains?.some((one) => one.name === run.chain && one.servingRevision === run.revision);
  return (
    <div className="run-column">
      <Verdict verdict={run.verdict} state={stateOfVerdict(run.verdict)} />
      <span title={run.summary ?? ""}>{run.name}</span>
      <span className="hint">{run.chain} <code title={run.revision}>{run.revision.slice(0, 8)}</code>{serving && <span className="tag">{PROMOTION.serves}</span>}</span>
      {run.llmProvider && <span className="hint">{run.llmProvider}</span>}
      <span className="hint">{passRate(run)}</span>
      {run.judge && <span className="hint" title={judgeInFull(run.judge)}>{judgeOf(run.judge)}</span>}
      <span className="hint">{count(run.tokens)} {COLUMNS.tokens.toLowerCase()}, {cost(run)}</span>
      <span className="hint" title={moment(run.startedAt)}>
        {run.verdict === null ? `${run.samplesEnded}/${run.samples}` : `${ago(run.finishedAt ?? run.startedAt, now)} ago`}
        {run.baseline && <>, {COLUMNS.baseline.toLowerCase()} {run.baseline}</>}
      </span>
      {!run.sameSuite && <span className="hint">{PROMOTION.olderSuite}</span>}
    </div>
  );
}

function Cell({ cell, label, chosen, onChoose }: { cell: SuiteCell; label: string; chosen: boolean; onChoose: () => void }) {
  const marks = marksOf(cell);
  const sentence = sentenceOf(cell);
  return (
    <button type="button" className={`cell o-${cell.outcome ?? "none"}`} aria-pressed={chosen} title={sentence} onClick={onChoose}>
      <span className="visually-hidden">{label}: </span>
      <span className="k-of-n">{cell.passed} of {cell.asked}</span>
      {marks.map((mark) => (
        <span key={mark} className={`mark-word m-${mark}`}><span aria-hidden="true">{signOf(mark)}</span> {MARKS[mark]}</span>
      ))}
      <RungBar rungs={cell.rungs} />
      <span className="visually-hidden">{coverageOf(cell)}</span>
      {cell.coverage !== null && Object.keys(cell.rungs).length === 0 && <span className="hint">{COLUMNS.coverage.toLowerCase()} {percent(cell.coverage)}</span>}
    </button>
  );
}

/** Shows the samples of one case in one run, with their checks. */
function Samples({ namespace, suite, run, kase }: { namespace: string; suite: string; run: string; kase: string | null }) {
  const loaded = useGet<EvalRun>(`/namespaces/${namespace}/evalruns/${run}`, { limit: 200, case: kase });
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void place.current?.scrollIntoView({ block: "nearest" }); // newer browsers return a promise, which is no cleanup
  }, [run, kase, loaded.value]);
  return (
    <div ref={place}>
      <Section title={`${SECTIONS.samples}: ${[kase, run].filter(Boolean).join(", ")}`} side={<button type="button" className="quiet" onClick={() => go(suiteLink(namespace, suite), true)}>{ACTIONS.close}</button>}>
        {loaded.error && <Problem error={loaded.error} />}
        {loaded.value?.run?.summary && <p className="hint">{loaded.value.run.summary}</p>}
        {loaded.value?.samples.length === 0 && <Empty>{EMPTY.noSamples}</Empty>}
        <ul className="plain-list">
          {loaded.value?.samples.map((one) => (
            <li key={`${one.case}/${one.sample}`}>
              <Verdict verdict={one.outcome} state={stateOfOutcome(one.outcome)} />{" "}
              {one.investigation ? <a href={investigationLink(namespace, one.investigation)}>{one.investigation}</a> : <span className="hint">{EMPTY.noRecord}</span>}
              <span className="hint">
                {" "}{count(one.tokens)} {COLUMNS.tokens.toLowerCase()}, {cost(one)}{one.coverage !== null && <>, {COLUMNS.coverage.toLowerCase()} {percent(one.coverage)}</>}
              </span>
              {one.confidentWrong && <span className="mark-word m-confidentlyWrong"> <span aria-hidden="true">{signOf("confidentlyWrong")}</span> {MARKS.confidentlyWrong}</span>}
              <ul className="checks">
                {one.checks.map((check, place) => (
                  <li key={`${place}/${check.name}`} className={stateOfOutcome(check.outcome) === "failed" ? "bad" : "hint"}>{check.name}: {check.outcome}. {check.sentence}</li>
                ))}
              </ul>
            </li>
          ))}
        </ul>
      </Section>
    </div>
  );
}
