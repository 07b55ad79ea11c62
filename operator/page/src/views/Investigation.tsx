/** Shows one investigation live: alert, stages, timeline, finding, questions. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { pathOf, post, Refused } from "../api/client";
import type { Investigation, UnstartedItem } from "../api/types";
import { author, between, moment, wordOf } from "../logic/format";
import { investigationAsMarkdown } from "../logic/markdown";
import { investigationLink, traceLink } from "../logic/route";
import { eventOfTool, isFinished, nowOf, type Timeline } from "../logic/timeline";
import { BudgetBars } from "../parts/BudgetBars";
import { ChainDiagram } from "../parts/ChainDiagram";
import { go, useGet, useNow, useTitle, useWorld } from "../parts/context";
import { FollowButton } from "../parts/Follows";
import { FlawBadges, SeverityBadge } from "../parts/Flaws";
import { useHeadHeight } from "../parts/headHeight";
import { ReplayActions } from "../parts/ReplayActions";
import { RetryAction } from "../parts/RetryAction";
import { ShareMenu } from "../parts/ShareMenu";
import { Badge, Empty, Problem, READ_ONLY } from "../parts/parts";
import { StreamsContext } from "../parts/streamed";
import { RequestTold } from "../parts/Unstarted";
import { useChanges } from "./changes";
import { useFollowing } from "./following";
import { Panels, type RunShown } from "./panels";
import { TimelineList } from "./TimelineList";
import { ACTIONS, EMPTY, EVENTS, PROBLEMS, RETRIES, SECTIONS, VIEWS } from "../words";

type Props = { namespace: string; name: string; event: string | null; quote: string | null };

export function InvestigationPage({ namespace, name, event, quote }: Props) {
  const world = useWorld();
  const [toStage, setToStage] = useState<{ stage: string } | null>(null);
  const onStage = useCallback((stage: string) => setToStage({ stage }), []);
  const { timeline, streams, error, loading } = useFollowing(world.live, namespace, name);
  const run = timeline.run;
  const whole = useGet<Investigation>(pathOf(namespace, name));
  const item = whole.value;
  const absent = !item && whole.error?.status === 404;
  const asked = useGet<UnstartedItem>(absent ? `${pathOf(namespace, name)}/request` : null, {}, 5);
  const state = run?.state ?? item?.state;
  const finished = isFinished(state);
  const now = useNow(!finished);
  const found = eventOfTool(timeline, "tarsy.changes")?.status === "completed";
  const changes = useChanges(item && !loading ? `${pathOf(namespace, name)}/changes` : null, found);
  useTitle(item ? `${item.alertType} ${name}` : name);

  // Usage, agents and conditions come from the record: read them again after changes of a stage, and while it runs.
  const steps = `${state}/${[...timeline.stages.values()].map((stage) => `${stage.state}${stage.agentsFinished}`).join()}/${error?.status}`;
  const again = whole.again;
  // The record that is read beside the whole timeline is as new, if the run had ended.
  const opened = useRef(true);
  const ended = useRef(false);
  ended.current = item !== null && finished && item.state === run?.state;
  useEffect(() => {
    if (loading && !error) return;
    const timer = setTimeout(() => {
      if (!opened.current || !ended.current) again();
      opened.current = false;
    }, 300);
    return () => clearTimeout(timer);
  }, [steps, loading]);
  useEffect(() => {
    if (finished) return;
    const timer = setInterval(again, 5000);
    return () => clearInterval(timer);
  }, [finished]);

  const head = useHeadHeight();
  const link = useCallback((id: string) => investigationLink(namespace, name, id), [namespace, name]);
  const show = useCallback((id: string, cited?: string) => go(investigationLink(namespace, name, id, cited)), [namespace, name]);
  const finding = run?.finding ?? null;
  const summary = run?.executiveSummary ?? item?.executiveSummary ?? null;
  const failure = run?.failure ?? item?.failure ?? null;
  const shown = useMemo(
    (): RunShown | null => item && { item, timeline, state: state ?? item.state, finished, finding, summary, failure, changes, show },
    [item, timeline, state, finished, finding, summary, failure, changes, show],
  );

  const stages = finished ? item?.stages : undefined;
  const states = useMemo(() => new Map(stages?.flatMap((stage) => stage.agents.map((agent) => [agent.id, agent.state]))), [stages]);

  if (whole.error && !item) {
    return (
      <div className="view">
        <h1>{namespace}/{name}</h1>
        {asked.value ? <RequestTold item={asked.value} /> : <div data-answer="now cause"><Problem error={whole.error} /></div>}
        <p className="hint" data-answer="next">{asked.value ? PROBLEMS.accepting : absent ? PROBLEMS.retrying : whole.error.status === 403 ? PROBLEMS.forbidden : PROBLEMS.reload}</p>
        <p><a href="#/investigations">{ACTIONS.showInvestigations}</a></p>
      </div>
    );
  }
  if (!item || !shown) return <div className="view" aria-busy="true" />;
  const events = timeline.order.length === 0 ? (
    <Empty>{loading ? EMPTY.loading : finished ? EMPTY.noEvents : state === "pending" ? EMPTY.queued : EMPTY.starting}</Empty>
  ) : (
    <TimelineList loading={loading} timeline={timeline} event={event} quote={quote} states={states} finished={finished} toStage={toStage} link={link} />
  );
  return (
    <StreamsContext value={streams}>
    <div className={finished ? "view wide ended" : "view wide running"}>
      <div className="run-head" ref={head}>
        <div className="title-row">
          <h1>{item.alertType}</h1>
          {state && <span data-answer="now"><Badge state={state} desired={run?.desiredState ?? item?.desiredState} /></span>}
          <span className="where">{namespace}/{name}</span>
          <span className="spring" />
          <div className="actions">
            {!finished && !world.session.hasToken && <span className="hint" title={READ_ONLY}>read-only</span>}
            {!finished && world.session.hasToken && <Wish namespace={namespace} name={name} desired={run?.desiredState ?? item.desiredState} />}
            {!finished && <FollowButton item={{ ...item, state: state ?? item.state }} />}
            <ShareMenu namespace={namespace} name={name} markdown={() => investigationAsMarkdown(item, streams.timeline, finding)} />
            <a className="button quiet" href={traceLink(namespace, name)}>{VIEWS.trace}</a>
            {finished && world.session.hasToken && !item.replay && !item.objectGone && <RetryAction item={item} />}
            {finished && <ReplayActions item={item} writes={world.session.hasToken} />}
          </div>
        </div>
        <p className="only-print hint">{location.href}, {moment(new Date(now).toISOString())}</p>
        <div className="facts">
          <span>chain <strong>{item.chain}</strong></span>
          {item.author && <span>by {author(item.author)}</span>}
          {finished && item.startedAt && <span title={moment(item.startedAt)}>duration {between(item.startedAt, run?.finishedAt ?? item.finishedAt, now)}</span>}
          {item.replay && <span>replay{item.replayOf && <> of <a href={investigationLink(namespace, item.replayOf)}>{item.replayOf}</a></>}</span>}
          {item.retryOf && <span>{RETRIES.of} <a href={investigationLink(namespace, item.retryOf.name)}>{item.retryOf.name}</a></span>}
          {item.retriedBy && <span>{RETRIES.by} <a href={investigationLink(namespace, item.retriedBy.name)}>{item.retriedBy.name}</a></span>}
          {item.attempt > 1 && <span>attempt {item.attempt}</span>}
          {item.severity && <SeverityBadge severity={item.severity} />}
          <FlawBadges flaws={item.flaws ?? []} />
          {item.objectGone && <span>object deleted, showing the record</span>}
        </div>
        <ChainDiagram item={item} stages={timeline.stages} onStage={onStage} />
        {!finished && <BudgetBars item={item} now={now} />}
        {!finished && <Now timeline={timeline} />}
      </div>
      {error && error.status !== 404 && <Problem error={error} title={PROBLEMS.liveUnavailable} />}
      {!finding && item.evidenceMissing.length > 0 && (
        <div className="problem soft">Missing evidence: {item.evidenceMissing.join("; ")}</div>
      )}
      {!finding && item.budgetExceeded && <div className="problem soft">{item.budgetExceeded.message}</div>}
      {finished ? (
        <>
          <div className="columns answer">
            <div className="side">
              <Panels place="story" run={shown} />
              <div className="later">
                <Panels place="context" run={shown} />
              </div>
            </div>
            <div className="main"><Panels place="answer" run={shown} /></div>
          </div>
          <section aria-label={SECTIONS.timeline}>{events}</section>
        </>
      ) : (
        <div className="columns">
          <div className="side">
            <Panels place="answer" run={shown} />
            <div className="later">
              <Panels place="context" run={shown} />
            </div>
          </div>
          <section className="main" aria-label={SECTIONS.timeline}>
            <Panels place="story" run={shown} />
            {events}
          </section>
        </div>
      )}
    </div>
    </StreamsContext>
  );
}

/** Tells what each agent does at the moment. */
function Now({ timeline }: { timeline: Timeline }) {
  const working = nowOf(timeline);
  if (working.length === 0) return null;
  return (
    <ul className="now" aria-label={SECTIONS.now}>
      {working.map((ev) => (
        <li key={ev.id}><strong>{ev.agent}</strong> <span className="line">{ev.type === "llm_tool_call" ? String(ev.metadata["name"] ?? "") : (wordOf(EVENTS, ev.type) ?? ev.type)}</span></li>
      ))}
    </ul>
  );
}

/** Concludes or cancels the run; the live connection reports the new state. */
function Wish({ namespace, name, desired }: { namespace: string; name: string; desired: string }) {
  const [sure, setSure] = useState<"cancel" | "conclude" | null>(null);
  const [asked, setAsked] = useState(desired);
  const [error, setError] = useState<Refused | null>(null);
  useEffect(() => setAsked(desired), [desired]);
  const wish = async (verb: "cancel" | "conclude") => {
    setSure(null);
    try {
      const told = await post<{ desiredState: string }>(`${pathOf(namespace, name)}/${verb}`);
      setAsked(told.desiredState);
      setError(null);
    } catch (refused) {
      setError(refused as Refused);
    }
  };
  if (asked === "Cancelled") return <span className="hint" role="status">cancelling …</span>;
  return (
    <>
      {error && <Problem error={error} />}
      {asked === "Concluded" && <span className="hint" role="status">concluding …</span>}
      {sure ? (
        <span className="sure">
          {sure === "cancel" ? "Stop immediately, without a finding?" : "Stop now and conclude from the evidence so far?"}
          <button type="button" className="danger" autoFocus onClick={() => void wish(sure)}>{sure === "cancel" ? ACTIONS.yesCancel : ACTIONS.yesConclude}</button>
          <button type="button" onClick={() => setSure(null)}>{ACTIONS.no}</button>
        </span>
      ) : (
        <>
          {asked !== "Concluded" && <button type="button" onClick={() => setSure("conclude")}>{ACTIONS.conclude}</button>}
          <button type="button" onClick={() => setSure("cancel")}>{ACTIONS.cancel}</button>
        </>
      )}
    </>
  );
}
