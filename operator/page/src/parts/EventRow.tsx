/** Shows one event of a timeline. Long texts are collapsed. */
import { memo, useState } from "react";
import { clock, pretty, step, wordOf, words } from "../logic/format";
import { eventAsMarkdown, withoutBlock } from "../logic/markdown";
import { originsOf } from "../logic/origins";
import type { Ev } from "../logic/timeline";
import { Markdown } from "./Markdown";
import { ACTIONS, EVENTS, STEPS } from "../words";
import { Copy } from "./parts";
import { SeriesCharts } from "./SeriesCharts";

const FOLDED = 12;

/** The name of a type; a newer replica may have written one that is not known here. */
function nameOf(type: string): string {
  return wordOf(EVENTS, type) ?? words(type);
}

type Props = { ev: Ev; chosen?: boolean; link?: string; showAgent?: boolean };

export const EventRow = memo(function EventRow({ ev, chosen = false, link, showAgent = true }: Props) {
  const streaming = ev.status === "streaming";
  const failed = ev.metadata["is_error"] === true || ev.type === "error";
  const odd = !["streaming", "completed"].includes(ev.status);
  return (
    <article className={`event e-${ev.type}${chosen ? " chosen" : ""}${failed ? " failed" : ""}`} aria-busy={streaming}>
      <header>
        <span className="kind">{nameOf(ev.type)}</span>
        {showAgent && ev.agent && <span className="who">{ev.parent && `${ev.parent} › `}{ev.agent}</span>}
        {failed && ev.type !== "error" && <span className="bad">{STEPS.failed}</span>}
        {ev.metadata["written_as"] === "text" && (
          <span className="hint" title="The model wrote this call as text instead of a tool call">written as text</span>
        )}
        {odd && <span className="bad">{step(ev.status)}</span>}
        {streaming && <span className="live">live</span>}
        <span className="spring" />
        {!streaming && ev.content && <Copy label={ACTIONS.copy} text={() => eventAsMarkdown(ev)} />}
        {link ? (
          <a className="time" href={link} title="Link to this event">
            {clock(ev.createdAt)}
          </a>
        ) : (
          <span className="time">{clock(ev.createdAt)}</span>
        )}
      </header>
      <Body ev={ev} streaming={streaming} chosen={chosen} />
    </article>
  );
});

function Body({ ev, streaming, chosen }: { ev: Ev; streaming: boolean; chosen: boolean }) {
  switch (ev.type) {
    case "llm_tool_call":
      return <ToolCall ev={ev} streaming={streaming} open={chosen} />;
    case "code_execution":
      return (
        <>
          {typeof ev.metadata["code"] === "string" && <Folded text={ev.metadata["code"]} open={chosen} />}
          <Folded text={ev.content} open={chosen} />
        </>
      );
    case "llm_thinking":
      return streaming ? <p className="plain">{ev.content}</p> : <Thinking text={ev.content} open={chosen} />;
    case "notice":
    case "provider_fallback":
    case "error":
    case "user_question":
      return <p className="plain">{ev.content}</p>;
    default:
      return (
        <>
          <Markdown text={withoutBlock(ev.content)} />
          {ev.truncated && <p className="hint">The text is truncated; the trace contains all of it.</p>}
        </>
      );
  }
}

function ToolCall({ ev, streaming, open }: { ev: Ev; streaming: boolean; open: boolean }) {
  const said = String(ev.metadata["arguments"] ?? "");
  const args = said === "{}" ? "" : said;
  return (
    <div className="tool-call">
      <div className="call">
        <code className="tool-name">{String(ev.metadata["name"] ?? "tool")}</code>
        {args && args.length <= 100 && <code className="args">{args}</code>}
      </div>
      {args.length > 100 && <Folded text={pretty(args)} open={open} label="arguments" />}
      {originsOf(ev.metadata["provenance"]).map((line) => <p className="hint" key={line}>{line}</p>)}
      {!streaming && <SeriesCharts text={ev.content} />}
      {streaming ? <p className="hint">{STEPS.running}</p> : <Folded text={pretty(ev.content)} open={open} label="result" />}
    </div>
  );
}

function Thinking({ text, open }: { text: string; open: boolean }) {
  const [whole, setWhole] = useState(open);
  const long = text.length > 280;
  return (
    <div className="thinking">
      {whole || !long ? <Markdown text={text} /> : <p className="plain">{text.slice(0, 240).trimEnd()} …</p>}
      {long && (
        <button type="button" className="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? ACTIONS.less : ACTIONS.more}
        </button>
      )}
    </div>
  );
}

function Folded({ text, open, label = "text" }: { text: string; open: boolean; label?: string }) {
  const [whole, setWhole] = useState(open);
  if (!text) return null;
  const lines = text.split("\n");
  const long = lines.length > FOLDED || text.length > 1600;
  const shown = whole || !long ? text : lines.slice(0, FOLDED).join("\n").slice(0, 1600);
  return (
    <div className="folded">
      <pre tabIndex={0} aria-label={label}>{shown}</pre>
      {long && (
        <button type="button" className="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? ACTIONS.less : `${ACTIONS.more}: ${lines.length} lines`}
        </button>
      )}
    </div>
  );
}
