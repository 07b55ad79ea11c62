/** Shows one event of a timeline, as one line until it is opened where the timeline is folded. Long texts are collapsed. */
import { memo, useEffect, useRef } from "react";
import { clock, pretty, step, wordOf, words } from "../logic/format";
import { lineOf, placeOf } from "../logic/lines";
import { eventAsMarkdown, withoutBlock } from "../logic/markdown";
import { originsOf } from "../logic/origins";
import type { Ev } from "../logic/timeline";
import { GrowingText } from "./GrowingText";
import { Markdown } from "./Markdown";
import { ACTIONS, ESCALATION, EVENTS, SECTIONS, STEPS } from "../words";
import { Copy } from "./parts";
import { usePrinted, useWhole } from "./printing";
import { SeriesCharts } from "./SeriesCharts";
import { useStreamed } from "./streamed";

const FOLDED = 12;

/** The name of a type; a newer replica may have written one that is not known here. */
function nameOf(type: string): string {
  return wordOf(EVENTS, type) ?? words(type);
}

type Props = {
  ev: Ev;
  chosen?: boolean;
  link?: string;
  showAgent?: boolean;
  /** Text to mark in the event. */
  quote?: string | null;
  /** Whether it is shown as one line; undefined: it is never folded. */
  folded?: boolean;
  onFold?: () => void;
};

export const EventRow = memo(function EventRow({ ev, chosen = false, link, showAgent = true, quote = null, folded, onFold }: Props) {
  const printed = usePrinted();
  const streaming = ev.status === "streaming";
  const failed = ev.metadata["is_error"] === true || ev.type === "error";
  const odd = !["streaming", "completed"].includes(ev.status);
  if (folded && !printed) {
    return (
      <article className={`event folded-event e-${ev.type}${failed ? " failed" : ""}`}>
        <button type="button" className="fold" aria-expanded={false} onClick={onFold}>
          <span className="kind">{nameOf(ev.type)}</span>
          {showAgent && ev.agent && <span className="who">{ev.agent}</span>}
          <span className="line">{lineOf(ev)}</span>
          {(failed || odd) && <span className="bad">{failed ? STEPS.failed : step(ev.status)}</span>}
          <span className="time">{clock(ev.createdAt)}</span>
        </button>
      </article>
    );
  }
  return (
    <article className={`event e-${ev.type}${chosen ? " chosen" : ""}${failed ? " failed" : ""}`} aria-busy={streaming}>
      <header>
        <span className="kind">{nameOf(ev.type)}</span>
        {showAgent && ev.agent && <span className="who">{ev.parent && `${ev.parent} › `}{ev.agent}</span>}
        {failed && ev.type !== "error" && <span className="bad">{STEPS.failed}</span>}
        {ev.metadata["written_as"] === "text" && (
          <span className="hint" title="The model wrote this call as text instead of a tool call">written as text</span>
        )}
        {ev.metadata["handed_on"] !== undefined && <span className="hint" title={ESCALATION.recordedTitle}>{ESCALATION.recorded}</span>}
        {odd && <span className="bad">{step(ev.status)}</span>}
        {streaming && <span className="live">live</span>}
        <span className="spring" />
        {onFold && folded !== undefined && <button type="button" className="quiet" aria-expanded onClick={onFold}>{ACTIONS.fold}</button>}
        {!streaming && ev.content && <Copy label={ACTIONS.copy} text={() => eventAsMarkdown(ev)} />}
        {link ? (
          <a className="time" href={link} title="Link to this event">
            {clock(ev.createdAt)}
          </a>
        ) : (
          <span className="time">{clock(ev.createdAt)}</span>
        )}
      </header>
      {quote ? <Quoted text={ev.content} quote={quote} /> : streaming ? <Streaming ev={ev} chosen={chosen} /> : <Body ev={ev} streaming={false} chosen={chosen} />}
    </article>
  );
});

/** Shows a text with a quote marked, scrolled to it. */
function Quoted({ text, quote }: { text: string; quote: string }) {
  const mark = useRef<HTMLElement>(null);
  useEffect(() => {
    const shown = mark.current?.closest("pre");
    if (mark.current && shown) shown.scrollTop = mark.current.offsetTop - shown.clientHeight / 2;
  }, [text, quote]);
  const place = placeOf(text, quote);
  return (
    <pre tabIndex={0} className="quoted" aria-label={SECTIONS.result}>
      {place ? <>{text.slice(0, place[0])}<mark ref={mark}>{text.slice(...place)}</mark>{text.slice(place[1])}</> : text}
    </pre>
  );
}

/** Shows an event that streams: of what it shows, only this is drawn again when words arrive. */
function Streaming({ ev, chosen }: { ev: Ev; chosen: boolean }) {
  const content = useStreamed(ev);
  return <Body ev={{ ...ev, content }} streaming chosen={chosen} />;
}

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
      return streaming ? <GrowingText text={ev.content} /> : <Thinking text={ev.content} open={chosen} />;
    case "notice":
    case "provider_fallback":
    case "error":
    case "user_question":
      return <p className="plain">{ev.content}</p>;
    default:
      return (
        <>
          <Markdown text={withoutBlock(ev.content)} streaming={streaming} />
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
  const [whole, setWhole] = useWhole(open);
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
  const [whole, setWhole] = useWhole(open);
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
