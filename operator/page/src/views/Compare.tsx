/** Shows two investigations side by side: outcome, finding, cost, and the tool calls from the first difference on. */
import { pathOf } from "../api/client";
import type { ComparedAgent, ComparedRun, Comparison, Step } from "../api/types";
import { cost, count, counted, duration, tokens } from "../logic/format";
import { compareLink, investigationLink } from "../logic/route";
import { percent, segments } from "../logic/suite";
import { ConfidenceTag } from "../parts/ConfidenceTag";
import { useGet, useTitle } from "../parts/context";
import { Badge, Empty, Problem, Section } from "../parts/parts";
import { RungBar } from "../parts/Rungs";
import { ACTIONS, COLUMNS, COMPARED, EMPTY, PROBLEMS, SECTIONS, VIEWS } from "../words";

type Props = { namespace: string; first: string; second: string };

export default function ComparePage({ namespace, first, second }: Props) {
  useTitle(`${VIEWS.compare} ${first}, ${second}`);
  const { value: found, error, loading } = useGet<Comparison>(`${pathOf(namespace, first)}/trace/comparison`, { other: second });
  return (
    <div className="view wide" aria-busy={loading || undefined}>
      <div className="title-row">
        <h1>{VIEWS.compare}</h1>
        <span className="spring" />
        <a href={compareLink(namespace, second, first)}>{ACTIONS.swap}</a>
      </div>
      {error && <Problem error={error} title={error.status === 403 ? PROBLEMS.compareForbidden : ""} />}
      {found && (
        <>
          <div className="two-sides">
            <Side run={found.first} other={found.second} changes={false} />
            <Side run={found.second} other={found.first} changes />
          </div>
          <Section title={SECTIONS.toolCalls}>
            {found.agents.length === 0 && <Empty>{EMPTY.noToolCalls}</Empty>}
            {found.agents.map((agent) => (
              <Agent key={`${agent.stage}/${agent.agent}`} agent={agent} found={found} />
            ))}
          </Section>
        </>
      )}
    </div>
  );
}

/** `changes`: writes how cost and tokens differ from the other side. */
function Side({ run, other, changes }: { run: ComparedRun; other: ComparedRun; changes: boolean }) {
  const apart = (same: boolean) => (same ? "" : "apart");
  return (
    <section className="card" aria-label={run.name}>
      <header className="title-row">
        <h2><a href={investigationLink(run.namespace, run.name)}>{run.name}</a></h2>
        <Badge state={run.state} />
      </header>
      <dl className="sides">
        <div className={apart(run.chain === other.chain)}><dt>{COLUMNS.chain}</dt><dd>{run.chain}</dd></div>
        <div className={apart(run.confidence === other.confidence)}>
          <dt>{COLUMNS.confidence}</dt>
          <dd>{run.confidence ? <ConfidenceTag finding={{ confidence: run.confidence, shownConfidence: run.shownConfidence }} /> : "–"}</dd>
        </div>
        <div><dt>{COLUMNS.cost}</dt><dd>{cost(run.spent)}{" "}{changes && <Change from={other.spent.costUSD} to={run.spent.costUSD} />}</dd></div>
        <div><dt>{COLUMNS.tokens}</dt><dd>{tokens(run.spent)}{" "}{changes && <Change from={other.spent.totalTokens} to={run.spent.totalTokens} />}</dd></div>
        <div><dt>{COLUMNS.duration}</dt><dd>{run.seconds === null ? "–" : duration(run.seconds * 1000)}</dd></div>
        <div><dt>{COLUMNS.modelCalls}</dt><dd>{count(run.modelCalls)}</dd></div>
        <div><dt>{COLUMNS.toolCalls}</dt><dd>{count(run.toolCalls)}</dd></div>
      </dl>
      {run.failure && <Problem error={new Error(run.failure)} />}
      <h3>{SECTIONS.finding}</h3>
      {run.summary ? <p className="finding-summary">{run.summary}</p> : <p className="hint">{EMPTY.noFinding}</p>}
      <ul>
        {run.claims.map((claim) => (
          <li key={claim} className={apart(other.claims.includes(claim))}>{claim}</li>
        ))}
      </ul>
      {run.unsupportedClaims > 0 && <p className="hint">{counted(run.unsupportedClaims, "unsupported")}</p>}
      {run.replay && (
        <>
          <h3>{SECTIONS.replay}</h3>
          <p>{COLUMNS.coverage} {percent(run.replay.coverage)}: {segments(run.replay.rungs).map((one) => `${one.count} ${one.word}`).join(", ") || EMPTY.noToolCalls}; {counted(run.replay.unusedCalls, "unused")}</p>
          <RungBar rungs={run.replay.rungs} />
          {run.replay.divergence && <p className="hint">{COMPARED.divergence}: {run.replay.divergence}</p>}
        </>
      )}
    </section>
  );
}

/** Writes how much more or less than the other side, in percent. */
function Change({ from, to }: { from: number | null; to: number | null }) {
  if (from === null || to === null || from === 0 || from === to) return null;
  const share = to / from - 1;
  return <span className="hint">({share > 0 ? "+" : "−"}{percent(Math.abs(share))})</span>;
}

function Agent({ agent, found }: { agent: ComparedAgent; found: Comparison }) {
  const same = agent.first.length === 0 && agent.second.length === 0;
  const only = agent.onlyIn === "first" ? found.first.name : agent.onlyIn === "second" ? found.second.name : null;
  return (
    <section className="compared-agent" aria-label={`${agent.stage}/${agent.agent}`}>
      <h3>{agent.stage}/{agent.agent}</h3>
      <p className={same && !only ? "hint" : ""}>
        {only ? `${COMPARED.onlyIn} ${only}` : same ? (agent.same === 0 ? COMPARED.noCall : counted(agent.same, "sameCalls")) : agent.same === 0 ? COMPARED.apartFromStart : counted(agent.same, "sameThenApart")}
      </p>
      {!same && (
        <div className="two-sides">
          <Steps name={found.first.name} steps={agent.first} from={agent.same} all={agent.firstCalls} />
          <Steps name={found.second.name} steps={agent.second} from={agent.same} all={agent.secondCalls} />
        </div>
      )}
    </section>
  );
}

function Steps({ name, steps, from, all }: { name: string; steps: readonly Step[]; from: number; all: number }) {
  const left = all - from - steps.length;
  return (
    <div className="steps">
      <p className="hint">{name}</p>
      {steps.length === 0 ? (
        <p>{COMPARED.noFurtherCall}</p>
      ) : (
        <ol start={from + 1}>
          {steps.map((one, place) => (
            <li key={place}><strong>{one.tool}</strong> <code>{one.arguments}</code></li>
          ))}
        </ol>
      )}
      {left > 0 && <p className="hint">{counted(left, "moreCalls")}</p>}
    </div>
  );
}
