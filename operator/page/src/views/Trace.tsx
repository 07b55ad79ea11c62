/** Shows the trace: all calls as a waterfall, and the details of the selected call. */
import { useEffect, useMemo, useState } from "react";
import { get, pathOf, Refused } from "../api/client";
import type { Message, ModelCall, ModelCallDetails, ToolCall, ToolCallDetails, Trace } from "../api/types";
import { cost, count, counted, duration, pretty, step, words } from "../logic/format";
import { investigationLink, traceLink } from "../logic/route";
import { bars, type Bar } from "../logic/waterfall";
import { go, useGet, useTitle } from "../parts/context";
import { Markdown } from "../parts/Markdown";
import { Badge, Empty, Problem, Section } from "../parts/parts";
import { EMPTY, PROBLEMS, SECTIONS, VIEWS } from "../words";

type Props = { namespace: string; name: string; call: string | null };

export default function TracePage({ namespace, name, call }: Props) {
  useTitle(`Trace of ${name}`);
  const { trace, error, more } = useTrace(namespace, name);
  const rows = useMemo(() => (trace ? bars(trace) : null), [trace]);
  const chosen = rows?.flatMap((stage) => stage.agents.flatMap((agent) => agent.bars)).find((bar) => bar.id === call);
  return (
    <div className="view wide">
      <div className="title-row">
        <h1>{VIEWS.trace}</h1>
        <a href={investigationLink(namespace, name)}>{namespace}/{name}</a>
      </div>
      {error && <Problem error={error} title={error.status === 403 ? PROBLEMS.traceForbidden : ""} />}
      {rows && (
        <div className="columns trace">
          <div className="waterfall">
            {rows.length === 0 && <Empty>{EMPTY.noCalls}</Empty>}
            {rows.map((stage) => (
              <section key={stage.id} aria-label={`Stage ${stage.name}`}>
                <h2>{stage.name} <Badge state={stage.state} of="step" /></h2>
                {stage.agents.map((agent) => (
                  <div key={agent.id} className="agent-trace">
                    <h3>{agent.name} <span className="hint">{agent.about}</span></h3>
                    <ol>
                      {agent.bars.map((bar) => (
                        <li key={bar.id}>
                          <BarRow bar={bar} chosen={bar.id === call} onChoose={() => go(traceLink(namespace, name, bar.id), true)} />
                        </li>
                      ))}
                    </ol>
                  </div>
                ))}
              </section>
            ))}
            {more && <p className="hint">{EMPTY.loading}</p>}
          </div>
          <div className="side-detail">
            {chosen ? <Detail key={chosen.id} namespace={namespace} name={name} bar={chosen} /> : rows.length > 0 && <Empty>{EMPTY.selectCall}</Empty>}
          </div>
        </div>
      )}
    </div>
  );
}

/** Reads all pages of the trace. */
function useTrace(namespace: string, name: string): { trace: Trace | null; error: Refused | null; more: boolean } {
  const [found, setFound] = useState<{ trace: Trace | null; error: Refused | null; more: boolean }>({ trace: null, error: null, more: true });
  useEffect(() => {
    const abort = new AbortController();
    const read = async () => {
      let whole: Trace | null = null;
      let token: string | null = null;
      do {
        const page: Trace = await get<Trace>(`${pathOf(namespace, name)}/trace`, { limit: 2000, continue: token }, abort.signal);
        whole = whole ? joined(whole, page) : page;
        token = page.continue;
        setFound({ trace: whole, error: null, more: token !== null });
      } while (token !== null);
    };
    read().catch((error: unknown) => {
      if (!abort.signal.aborted) setFound((before) => ({ ...before, error: error instanceof Refused ? error : new Refused(0, "Error", String(error)), more: false }));
    });
    return () => abort.abort();
  }, [namespace, name]);
  return found;
}

function joined(before: Trace, page: Trace): Trace {
  const agents = new Map(before.stages.flatMap((stage) => stage.agents).map((agent) => [agent.id, agent]));
  return {
    ...page,
    stages: page.stages.map((stage) => ({
      ...stage,
      agents: stage.agents.map((agent) => {
        const known = agents.get(agent.id);
        return known ? { ...agent, llm: [...known.llm, ...agent.llm], mcp: [...known.mcp, ...agent.mcp] } : agent;
      }),
    })),
  };
}

function BarRow({ bar, chosen, onChoose }: { bar: Bar; chosen: boolean; onChoose: () => void }) {
  return (
    <button type="button" className={`bar-row ${bar.kind}${chosen ? " chosen" : ""}${bar.bad ? " bad-call" : ""}`} aria-pressed={chosen} onClick={onChoose}>
      <span className="bar-name">{bar.name}</span>
      <span className="lane" aria-hidden="true">
        <svg width="100%" height="10" preserveAspectRatio="none">
          <rect x={`${bar.left}%`} width={`${Math.max(bar.width, 0.4)}%`} height="10" rx="2" />
        </svg>
      </span>
      <span className="bar-time">{bar.milliseconds === null ? step(bar.state) : duration(bar.milliseconds)}</span>
    </button>
  );
}

function Detail({ namespace, name, bar }: { namespace: string; name: string; bar: Bar }) {
  const base = `${pathOf(namespace, name)}/trace`;
  return bar.kind === "llm" ? <ModelDetail path={`${base}/llm/${bar.id}`} /> : <ToolDetail path={`${base}/mcp/${bar.id}`} />;
}

function ModelDetail({ path }: { path: string }) {
  const { value: call, error } = useGet<ModelCallDetails>(path);
  if (error) return <Problem error={error} />;
  if (!call) return <div aria-busy="true" />;
  return (
    <Section title={`Model call ${call.number + 1}: ${words(call.kind)}`} side={<Badge state={call.state} of="step" />}>
      <Facts call={call} />
      {call.failure && <Problem error={new Error(call.failure.message)} title={call.failure.reason} />}
      <h3>{SECTIONS.sent}</h3>
      {call.messages.map((message, place) => (
        <Said key={place} message={message} open={message.role !== "system" && place >= call.messages.length - 2} />
      ))}
      {call.tools.length > 0 && (
        <details>
          <summary>{counted(call.tools.length, "toolsOffered")}</summary>
          <ul className="offered">
            {call.tools.map((tool) => (
              <li key={tool.name}><code>{tool.name}</code> {tool.description}</li>
            ))}
          </ul>
        </details>
      )}
      <h3>{SECTIONS.response}</h3>
      {call.thinking && (
        <details>
          <summary>{SECTIONS.thinking}</summary>
          <Markdown text={call.thinking} />
        </details>
      )}
      {call.answer ? <Said message={call.answer} open /> : <p className="hint">{EMPTY.noResponse}</p>}
      {Object.keys(call.metadata).length > 0 && (
        <details>
          <summary>{SECTIONS.metadata}</summary>
          <pre tabIndex={0}>{JSON.stringify(call.metadata, null, 2)}</pre>
        </details>
      )}
    </Section>
  );
}

function Facts({ call }: { call: ModelCall }) {
  return (
    <p className="facts">
      <span>{call.provider} <strong>{call.model}</strong></span>
      <span>{call.strategy}</span>
      {call.durationMs !== null && <span>{duration(call.durationMs)}</span>}
      {call.spent && <span>{count(call.spent.inputTokens)} in, {count(call.spent.outputTokens)} out</span>}
      {call.spent && <span>{cost(call.spent)}</span>}
    </p>
  );
}

function Said({ message, open }: { message: Message; open: boolean }) {
  return (
    <details className={`said role-${message.role}`} open={open}>
      <summary>
        <strong>{message.role}</strong> {message.toolName && <code>{message.toolName}</code>}
        <span className="hint">{count(message.content.length)} characters</span>
      </summary>
      {message.content && <pre tabIndex={0}>{message.role === "tool" ? pretty(message.content) : message.content}</pre>}
      {message.toolCalls?.map((use) => (
        <pre key={use.id} className="use" tabIndex={0}>{use.name} {pretty(use.arguments)}</pre>
      ))}
    </details>
  );
}

function ToolDetail({ path }: { path: string }) {
  const { value: call, error } = useGet<ToolCallDetails>(path);
  if (error) return <Problem error={error} />;
  if (!call) return <div aria-busy="true" />;
  return (
    <Section title={`${call.server}.${call.tool}`} side={<Badge state={call.state} of="step" />}>
      <ToolFacts call={call} />
      <h3>{SECTIONS.arguments}</h3>
      <pre tabIndex={0}>{pretty(call.arguments) || EMPTY.noArguments}</pre>
      <h3>{SECTIONS.result}</h3>
      {call.result === null ? <p className="hint">{EMPTY.noResult}</p> : <pre tabIndex={0}>{pretty(call.result)}</pre>}
    </Section>
  );
}

function ToolFacts({ call }: { call: ToolCall }) {
  return (
    <p className="facts">
      <span>{words(call.access)}</span>
      {call.durationMs !== null && <span>{duration(call.durationMs)}</span>}
      {!call.made && <span>not sent to the server{call.refused ? `: ${call.refused}` : ""}</span>}
      {call.repeatedOf && <span>result of an earlier call reused</span>}
      {call.attempt > 0 && <span>attempt {call.attempt + 1}</span>}
      <span>cited as <code>{call.ref}</code></span>
    </p>
  );
}
