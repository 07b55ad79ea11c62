/** Shows why nothing starts, which object is broken, and what an alert would run. */
import { useMemo, type ReactNode } from "react";
import type { ActivityShown, Chains, ConfigurationShown, ObjectHealthShown, Queue, Runbooks, WorkersShown } from "../api/types";
import { counted } from "../logic/format";
import { healthByObject, hoursOf } from "../logic/health";
import { systemLink } from "../logic/route";
import { filtered, healthCounts, hoursByObject, NO_SYSTEM_QUERY, whatIsBroken, whyNothingStarts, type SystemQuery } from "../logic/system";
import { ConfigurationList } from "../parts/ConfigurationList";
import { go, scope, useGet, useNow, useTitle, useWorld, type Loaded } from "../parts/context";
import { HealthLegend } from "../parts/HealthOverTime";
import { Empty, Problem, Section } from "../parts/parts";
import { PlanViewer } from "../parts/PlanTree";
import { QueueList, WorkerList } from "../parts/QueueList";
import { RunbookDetails } from "../parts/Skills";
import { ACTIONS, EMPTY, HEALTH, HEALTH_OVER_TIME, SECTIONS, SYSTEM, VIEWS } from "../words";

const SECONDS = 10;
const ACTIVITY_SECONDS = 60;
const FORBIDDEN = 403;
const LIBRARY = "tarsy-library";

export default function System({ query }: { query: SystemQuery }) {
  useTitle(VIEWS.system);
  const world = useWorld();
  // Objects of the library apply to every namespace, so they are always shown.
  const chosen = scope(world);
  const namespace = chosen.length === 0 || chosen.includes(LIBRARY) || !world.namespaces.items.includes(LIBRARY) ? chosen : [...chosen.slice(0, 19), LIBRARY];
  const queue = useGet<Queue>("/queue", { namespace: chosen }, SECONDS);
  const workers = useGet<WorkersShown>("/workers", {}, SECONDS);
  const configuration = useGet<ConfigurationShown>("/configuration", { namespace }, SECONDS);
  const activity = useGet<ActivityShown>("/configuration/activity", { namespace: chosen }, ACTIVITY_SECONDS);
  const health = useGet<ObjectHealthShown>("/objects", { namespace, hours: hoursOf(query.period) }, ACTIVITY_SECONDS);
  const chains = useGet<Chains>("/chains", { namespace, limit: 200 }, ACTIVITY_SECONDS);
  const runbooks = useGet<Runbooks>("/runbooks", { namespace, limit: 200 }, ACTIVITY_SECONDS);
  const now = useNow(true);
  return (
    <div className="view wide system" aria-busy={queue.loading || configuration.loading || undefined}>
      <h1>{VIEWS.system}</h1>
      <Answers queue={queue} configuration={configuration} />
      <div className="two-cards">
        <Section title={SECTIONS.queue}>
          {queue.error && <Problem error={queue.error} />}
          {queue.value && <QueueList queue={queue.value} now={now} />}
        </Section>
        <Section title={SECTIONS.workers}>
          {workers.error?.status === FORBIDDEN && <p className="hint">{SYSTEM.workersForbidden}</p>}
          {workers.error && workers.error.status !== FORBIDDEN && <Problem error={workers.error} />}
          {workers.value && <WorkerList workers={workers.value} now={now} />}
        </Section>
      </div>
      <Objects configuration={configuration} activity={activity} health={health} query={query} />
      <Section title={SECTIONS.plan}>
        {chains.error && <Problem error={chains.error} />}
        {chains.value && <PlanViewer chains={chains.value.items} query={query} />}
      </Section>
      <Section title={SECTIONS.runbooks}>
        {runbooks.error && <Problem error={runbooks.error} />}
        {runbooks.value?.items.length === 0 && <Empty>{EMPTY.noRunbooks}</Empty>}
        <ul className="plain-list">
          {runbooks.value?.items.map((one) => (
            <li key={`${one.kind}/${one.namespace}/${one.name}`}>
              <strong>{one.kind} {one.namespace}/{one.name}</strong>
              <RunbookDetails runbook={one} />
            </li>
          ))}
        </ul>
      </Section>
    </div>
  );
}

function Answers({ queue, configuration }: { queue: Loaded<Queue>; configuration: Loaded<ConfigurationShown> }) {
  return (
    <dl className="answers">
      <Answer question={SYSTEM.whyNothing} told={queue.value && whyNothingStarts(queue.value)} refused={queue.error?.message} />
      <Answer question={SYSTEM.whatBroken} told={configuration.value && whatIsBroken(configuration.value)} refused={configuration.error?.message} />
    </dl>
  );
}

function Answer({ question, told, refused }: { question: string; told: { text: string; bad: boolean } | null; refused: string | undefined }) {
  return (
    <div>
      <dt>{question}</dt>
      <dd className={told?.bad || refused ? "bad" : undefined}>{told?.text ?? refused ?? EMPTY.loading}</dd>
    </div>
  );
}

type ObjectsProps = { configuration: Loaded<ConfigurationShown>; activity: Loaded<ActivityShown>; health: Loaded<ObjectHealthShown>; query: SystemQuery };

function Objects({ configuration, activity, health, query }: ObjectsProps) {
  const all = configuration.value?.items;
  const items = useMemo(() => (all ? filtered(all, query) : []), [all, query]);
  const hours = useMemo(() => (activity.value ? hoursByObject(activity.value) : new Map()), [activity.value]);
  const over = useMemo(() => (health.value ? { period: health.value, of: healthByObject(health.value) } : null), [health.value]);
  const change = (changes: Partial<SystemQuery>) => go(systemLink({ ...query, ...changes }), true);
  return (
    <Section title={SECTIONS.configuration}>
      {configuration.error && <Problem error={configuration.error} />}
      {activity.error && <Problem error={activity.error} />}
      {health.error && health.error.message !== activity.error?.message && <Problem error={health.error} />}
      {all && (
        <>
          <div className="filters">
            <input type="search" aria-label={SYSTEM.search} placeholder={SYSTEM.search} value={query.search} onChange={(event) => change({ search: event.target.value })} />
            <Choice label={SYSTEM.anyKind} value={query.kind} onChange={(kind) => change({ kind })}>
              {configuration.value?.kinds.map((kind) => <option key={kind}>{kind}</option>)}
            </Choice>
            <Choice label={SYSTEM.anyHealth} value={query.health} onChange={(health) => change({ health })}>
              {healthCounts(all).map(([health, n]) => <option key={health} value={health}>{`${HEALTH[health]} (${n})`}</option>)}
            </Choice>
            <select aria-label={HEALTH_OVER_TIME.period} value={query.period} onChange={(event) => change({ period: event.target.value })}>
              <option value="">{HEALTH_OVER_TIME.day}</option>
              <option value="7d">{HEALTH_OVER_TIME.week}</option>
            </select>
            {(query.search || query.kind || query.health) && <button type="button" className="quiet" onClick={() => go(systemLink(NO_SYSTEM_QUERY), true)}>{ACTIONS.clear}</button>}
            <span className="hint" role="status">{counted(items.length, "objects")}</span>
          </div>
          {health.value && all.length > 0 && <HealthLegend week={query.period === "7d"} />}
          {activity.value && <p className="hint">{SYSTEM.strip}</p>}
          {items.length === 0 ? <Empty>{all.length === 0 ? SYSTEM.noObjects : SYSTEM.noMatch}</Empty> : <ConfigurationList items={items} hours={hours} health={over} query={query} />}
          {configuration.value?.continue && <p className="hint">{SYSTEM.moreNotShown}</p>}
        </>
      )}
    </Section>
  );
}

function Choice({ label, value, onChange, children }: { label: string; value: string; onChange: (value: string) => void; children: ReactNode }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{label}</option>
      {children}
    </select>
  );
}
