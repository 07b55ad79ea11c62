/** Shows chains, tool servers, skills, models and schedules with their warnings, the queue and the workers. */
import type { ReactNode } from "react";
import type { Chains, McpServers, Providers, Queue, Runbooks, Schedules, Skills, Warnings } from "../api/types";
import { between, counted } from "../logic/format";
import { scope, useGet, useNow, useTitle, useWorld, type Loaded } from "../parts/context";
import { Empty, Problem, Section } from "../parts/parts";
import { ScheduleDetails } from "../parts/Schedules";
import { RunbookDetails, SkillDetails } from "../parts/Skills";
import { COLUMNS, EMPTY, READY, SECTIONS, VIEWS } from "../words";

const SECONDS = 10;
const LIBRARY = "tarsy-library";

export default function System() {
  useTitle(VIEWS.system);
  const world = useWorld();
  // Objects of the library apply to every namespace, so they are always shown.
  const chosen = scope(world);
  const namespace = chosen.length === 0 || chosen.includes(LIBRARY) || !world.namespaces.items.includes(LIBRARY) ? chosen : [...chosen.slice(0, 19), LIBRARY];
  const query = { namespace, limit: 200 };
  const warnings = useGet<Warnings>("/warnings", query, SECONDS);
  const servers = useGet<McpServers>("/mcpservers", query, SECONDS);
  const providers = useGet<Providers>("/llmproviders", query, SECONDS);
  const chains = useGet<Chains>("/chains", query, SECONDS);
  const runbooks = useGet<Runbooks>("/runbooks", query, SECONDS);
  const skills = useGet<Skills>("/skills", query, SECONDS);
  const schedules = useGet<Schedules>("/alertschedules", { namespace: scope(useWorld()), limit: 200 }, SECONDS);
  const queue = useGet<Queue>("/queue", {}, SECONDS);
  const now = useNow(true);
  return (
    <div className="view wide">
      <h1>{VIEWS.system}</h1>
      <div className="grid">
        <Section title={SECTIONS.warnings}>
          <List loaded={warnings} none={EMPTY.noWarnings}>
            {warnings.value?.items.map((one) => (
              <li key={`${one.kind}/${one.namespace}/${one.name}/${one.type}`}>
                <strong>{one.kind} {one.namespace}/{one.name}</strong> <span className="bad">{one.type}: {one.reason}</span>
                <p className="hint">{one.message}</p>
              </li>
            ))}
          </List>
        </Section>
        <Section title={SECTIONS.queue}>
          {queue.error && <Problem error={queue.error} />}
          {queue.value && (
            <>
              <dl className="figures">
                <div><dt>{COLUMNS.queued}</dt><dd>{queue.value.pending}</dd></div>
                <div><dt>{COLUMNS.running}</dt><dd>{queue.value.running}</dd></div>
                <div><dt>{COLUMNS.orphaned}</dt><dd>{queue.value.orphaned}</dd></div>
              </dl>
              <ul className="plain-list">
                {queue.value.workers.map((worker) => (
                  <li key={worker.id}>{worker.host} <span className="hint">{counted(worker.runs, "runs")}, up for {between(worker.startedAt, null, now)}</span></li>
                ))}
              </ul>
            </>
          )}
        </Section>
        <Section title={SECTIONS.chains}>
          <List loaded={chains} none={EMPTY.noChains}>
            {chains.value?.items.map((chain) => (
              <li key={chain.uid}>
                <Ready ready={chain.ready} /> <strong>{chain.namespace}/{chain.name}</strong>
                <span className="hint"> {chain.alertTypes.join(", ")}</span>
                <p className="stages-line">
                  {chain.stages.map((stage) => `${stage.name} (${stage.agents.join(" + ")}${stage.replicas > 1 ? ` ×${stage.replicas}` : ""})`).join(" → ")}
                </p>
                <Conditions conditions={chain.conditions} />
              </li>
            ))}
          </List>
        </Section>
        <Section title={SECTIONS.servers}>
          <List loaded={servers} none={EMPTY.noServers}>
            {servers.value?.items.map((server) => (
              <li key={server.uid}>
                <Ready ready={server.available ?? server.ready} /> <strong>{server.namespace}/{server.name}</strong>
                <span className="hint"> {server.transport}, {server.toolPolicy}</span>
                {server.tools.length > 0 && (
                  <details>
                    <summary>{counted(server.toolCount ?? server.tools.length, "tools")}</summary>
                    <p className="stages-line">{server.tools.join(", ")}</p>
                  </details>
                )}
                {server.lastError && <p className="bad">{server.lastError}</p>}
                <Conditions conditions={server.conditions} />
              </li>
            ))}
          </List>
        </Section>
        <Section title={SECTIONS.skills}>
          <List loaded={skills} none={EMPTY.noSkills}>
            {skills.value?.items.map((one) => (
              <li key={one.uid}>
                <Ready ready={one.ready} /> <strong>{one.namespace}/{one.name}</strong>
                <SkillDetails skill={one} />
                <Conditions conditions={one.conditions} />
              </li>
            ))}
          </List>
        </Section>
        <Section title={SECTIONS.schedules}>
          <List loaded={schedules} none={EMPTY.noSchedules}>
            {schedules.value?.items.map((one) => (
              <li key={one.uid}>
                <Ready ready={one.ready} /> <strong>{one.namespace}/{one.name}</strong>
                <ScheduleDetails schedule={one} />
                <Conditions conditions={one.conditions} />
              </li>
            ))}
          </List>
        </Section>
        <Section title={SECTIONS.runbooks}>
          <List loaded={runbooks} none={EMPTY.noRunbooks}>
            {runbooks.value?.items.map((one) => (
              <li key={`${one.kind}/${one.namespace}/${one.name}`}>
                <strong>{one.kind} {one.namespace}/{one.name}</strong>
                <RunbookDetails runbook={one} />
              </li>
            ))}
          </List>
        </Section>
        <Section title={SECTIONS.providers}>
          <List loaded={providers} none={EMPTY.noProviders}>
            {providers.value?.items.map((one) => (
              <li key={one.uid}>
                <Ready ready={one.ready} /> <strong>{one.namespace}/{one.name}</strong>
                <span className="hint"> {one.type} {one.model}{one.hasRates ? "" : ", cost unknown"}</span>
                <Conditions conditions={one.conditions} />
              </li>
            ))}
          </List>
        </Section>
      </div>
    </div>
  );
}

function List({ loaded, none, children }: { loaded: Loaded<{ items: readonly unknown[] }>; none: string; children: ReactNode }) {
  return (
    <>
      {loaded.error && <Problem error={loaded.error} />}
      {loaded.value && (loaded.value.items.length > 0 ? <ul className="plain-list">{children}</ul> : <Empty>{none}</Empty>)}
    </>
  );
}

function Ready({ ready }: { ready: boolean | null }) {
  const state = ready === null ? "pending" : ready ? "completed" : "failed";
  return (
    <span className={`badge state-${state}`}>
      <span className="dot" aria-hidden="true" />
      {ready === null ? READY.unknown : ready ? READY.yes : READY.no}
    </span>
  );
}

function Conditions({ conditions }: { conditions: readonly { type: string; status: string; reason: string; message: string }[] }) {
  const wrong = conditions.filter((one) => one.status === "False");
  return wrong.map((one) => (
    <p key={one.type} className="hint">{one.type}: {one.reason}. {one.message}</p>
  ));
}
