/** Lists configuration objects with their health; the details of one open below its row. */
import { memo, useEffect, useRef } from "react";
import type { ConfigurationItem, ObjectHealth, ObjectHealthShown, ObjectName, ObjectRuns, Schedules, Skills } from "../api/types";
import { moment } from "../logic/format";
import { investigationLink, systemLink } from "../logic/route";
import { idOf, stateOfHealth, type Hour, type SystemQuery } from "../logic/system";
import { COLUMNS, EMPTY, HEALTH, SYSTEM } from "../words";
import { go, scope, useGet, useWorld } from "./context";
import { HealthOverTime } from "./HealthOverTime";
import { HealthBadge, HealthStrip } from "./HealthStrip";
import { Badge, Problem } from "./parts";
import { ScheduleDetails } from "./Schedules";
import { SkillDetails } from "./Skills";
import { TransitionTable } from "./Transitions";

const PLANNED = ["Chain", "Agent", "MCPServer", "LLMProvider", "Skill", "InvestigationDefaults"];

type Props = {
  items: readonly ConfigurationItem[];
  hours: ReadonlyMap<string, Hour[]>;
  /** Health over time by object; null while it is not known. */
  health: { period: ObjectHealthShown; of: ReadonlyMap<string, ObjectHealth> } | null;
  query: SystemQuery;
};

export function ConfigurationList({ items, hours, health, query }: Props) {
  return (
    <ul className="objects">
      {items.map((item) => {
        const id = idOf(item);
        const open = query.object === id;
        const over = health?.of.get(id);
        return (
          <li key={id} className={open ? "open" : undefined}>
            <div className="object-line">
              <Row item={item} hours={hours.get(id)} open={open} link={systemLink({ ...query, object: open ? "" : id })} />
              {over && health && <HealthOverTime health={over} since={health.period.since} cellMinutes={health.period.cellMinutes} />}
            </div>
            {open && <Details item={item} query={query} />}
          </li>
        );
      })}
    </ul>
  );
}

const Row = memo(function Row({ item, hours, open, link }: { item: ConfigurationItem; hours: Hour[] | undefined; open: boolean; link: string }) {
  return (
    <button type="button" className="object-row" onClick={() => go(link, true)} aria-expanded={open}>
      <HealthBadge state={stateOfHealth(item.health)}>{HEALTH[item.health]}</HealthBadge>
      <span className="object-name"><strong>{item.namespace}/{item.name}</strong> <span className="hint">{item.kind}</span></span>
      <HealthStrip hours={hours} kind={item.kind} />
      <span className="object-why">{item.health === "Ready" ? <span className="hint">{item.summary}</span> : <>{item.reason && <strong>{item.reason} </strong>}{item.message}</>}</span>
    </button>
  );
});

function Details({ item, query }: { item: ConfigurationItem; query: SystemQuery }) {
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => {
    top.current?.scrollIntoView({ block: "nearest" }); // newer browsers return a promise, which is no cleanup
  }, []);
  return (
    <div className="object-details" ref={top}>
      {item.summary && <p>{item.summary}</p>}
      <dl className="facts">
        {item.address && <div><dt>{SYSTEM.address}</dt><dd><code>{item.address}</code></dd></div>}
        {item.lastError && <div><dt>{SYSTEM.lastError}</dt><dd className="bad">{item.lastError}</dd></div>}
        {item.createdAt && <div><dt>{SYSTEM.created}</dt><dd>{moment(item.createdAt)}</dd></div>}
        {item.tools.length > 0 && <div><dt>{SYSTEM.tools}</dt><dd>{item.tools.join(", ")}</dd></div>}
      </dl>
      {item.conditions.length > 0 && (
        <>
          <h3>{SYSTEM.conditions}</h3>
          <ul className="plain-list">
            {item.conditions.map((one) => (
              <li key={one.type}>
                <strong>{one.type}: {one.status}</strong> {one.reason} <span className="hint">{one.since && `${SYSTEM.since} ${moment(one.since)}. `}{one.message}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      <TransitionTable item={item} />
      <References title={SYSTEM.uses} objects={item.uses} query={query} />
      <References title={SYSTEM.usedBy} objects={item.usedBy} query={query} />
      {item.kind === "Skill" && <SkillText item={item} />}
      {item.kind === "AlertSchedule" && <ScheduleTimes item={item} />}
      {item.kind === "Chain" && <p><a href={systemLink({ ...query, plan: `${item.namespace}/${item.name}`, type: "", from: "" })}>{SYSTEM.showPlan}</a></p>}
      {PLANNED.includes(item.kind) && <LastRuns item={item} />}
    </div>
  );
}

function References({ title, objects, query }: { title: string; objects: readonly (ObjectName & { found?: boolean | null })[]; query: SystemQuery }) {
  if (objects.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul className="references">
        {objects.map((one) => (
          <li key={idOf(one)}>
            {one.found === false ? <span className="bad">{one.kind} {one.namespace}/{one.name} {SYSTEM.missing}</span> : <a href={systemLink({ ...query, search: "", kind: "", health: "", object: idOf(one) })}>{one.kind} {one.namespace}/{one.name}</a>}
          </li>
        ))}
      </ul>
    </>
  );
}

function LastRuns({ item }: { item: ConfigurationItem }) {
  const runs = useGet<ObjectRuns>("/configuration/runs", { namespace: scope(useWorld()), kind: item.kind, ofNamespace: item.namespace, ofName: item.name });
  return (
    <>
      <h3>{SYSTEM.lastRuns}</h3>
      {runs.error && <Problem error={runs.error} />}
      {runs.loading && <p className="hint" aria-busy="true">{EMPTY.loading}</p>}
      {runs.value?.items.length === 0 && <p className="hint">{SYSTEM.noRuns}</p>}
      <ul className="plain-list">
        {runs.value?.items.map((run) => (
          <li key={run.uid}>
            <Badge state={run.state} /> <a href={investigationLink(run.namespace, run.name)}>{run.namespace}/{run.name}</a>
            <span className="hint"> {COLUMNS.chain} {run.chainNamespace}/{run.chain}, {moment(run.acceptedAt)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function SkillText({ item }: { item: ConfigurationItem }) {
  const skills = useGet<Skills>("/skills", { namespace: [item.namespace], limit: 200 });
  const skill = skills.value?.items.find((one) => one.name === item.name);
  return skill ? <SkillDetails skill={skill} /> : null;
}

function ScheduleTimes({ item }: { item: ConfigurationItem }) {
  const schedules = useGet<Schedules>("/alertschedules", { namespace: [item.namespace], limit: 200 });
  const schedule = schedules.value?.items.find((one) => one.name === item.name);
  return schedule ? <ScheduleDetails schedule={schedule} /> : null;
}
