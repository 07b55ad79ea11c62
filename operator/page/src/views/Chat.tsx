/** Shows the questions about a finished investigation, and streams their answers. */
import { useEffect, useMemo, useState, type FormEvent } from "react";
import { pathOf, post, Refused } from "../api/client";
import type { Asked, ChatMessages } from "../api/types";
import { author, counted } from "../logic/format";
import { withoutBlock } from "../logic/markdown";
import { isFinished, type Ev, type Timeline } from "../logic/timeline";
import { useGet, useWorld } from "../parts/context";
import { EventRow } from "../parts/EventRow";
import { Markdown } from "../parts/Markdown";
import { useStreamed } from "../parts/streamed";
import { Badge, Problem, ReadOnly, Section } from "../parts/parts";
import { ACTIONS, SECTIONS } from "../words";

type Props = { namespace: string; name: string; timeline: Timeline };
type Turn = { uid: string; name: string; place: number; question: string | null; author: string | null; via: string | null; state: string; failure: string | null; events: Ev[] };

export function Chat({ namespace, name, timeline }: Props) {
  const writes = useWorld().session.hasToken;
  const known = useGet<ChatMessages>(`${pathOf(namespace, name)}/chatmessages`, { limit: 200 });
  const turns = useMemo(() => turnsOf(timeline, known.value), [timeline, known.value]);
  const [text, setText] = useState("");
  const [error, setError] = useState<Refused | null>(null);
  const [busy, setBusy] = useState(false);
  const waiting = turns.some((turn) => !isFinished(turn.state));
  const states = turns.map((turn) => turn.state).join();
  const again = known.again;
  useEffect(() => {
    const timer = setTimeout(again, 300);
    return () => clearTimeout(timer);
  }, [states]);
  useEffect(() => {
    if (!waiting) return;
    const timer = setInterval(again, 3000);
    return () => clearInterval(timer);
  }, [waiting]);

  const ask = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await post<Asked>(`${pathOf(namespace, name)}/chatmessages`, { question: text.trim() });
      setText("");
      setError(null);
      again();
    } catch (refused) {
      setError(refused as Refused);
    } finally {
      setBusy(false);
    }
  };
  const stop = async (turn: Turn) => {
    try {
      await post(`/namespaces/${namespace}/chatmessages/${turn.name}/cancel`);
    } catch (refused) {
      setError(refused as Refused);
    }
  };
  if (known.error?.status === 403) return null;
  return (
    <Section title={SECTIONS.questions}>
      <div className="chat" aria-live="polite">
        {turns.map((turn) => (
          <TurnView key={turn.uid} turn={turn} onStop={writes ? () => void stop(turn) : null} />
        ))}
      </div>
      {error && <Problem error={error} />}
      {writes ? (
        <form className="ask" onSubmit={(event) => void ask(event)}>
          <textarea
            aria-label="Ask a question"
            placeholder="Ask about this investigation"
            rows={2}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && text.trim() && !busy && !waiting) void ask(event);
            }}
          />
          <button type="submit" className="primary" disabled={busy || waiting || !text.trim()}>{waiting ? ACTIONS.answering : ACTIONS.ask}</button>
        </form>
      ) : (
        <ReadOnly />
      )}
    </Section>
  );
}

function TurnView({ turn, onStop }: { turn: Turn; onStop: (() => void) | null }) {
  const answer = turn.events.filter((ev) => ev.type === "final_analysis").at(-1);
  const steps = turn.events.filter((ev) => ev !== answer && ev.type !== "user_question");
  const running = !isFinished(turn.state);
  return (
    <div className="turn">
      {turn.author && (
        <p className="hint">
          {author(turn.author)}
          {turn.via && <> {ACTIONS.via} {turn.via}</>}
        </p>
      )}
      <p className="asked">{turn.question ?? "…"}</p>
      {steps.length > 0 && (
        <details open={running}>
          <summary>{counted(steps.length, "steps")}</summary>
          {steps.map((ev) => (
            <EventRow key={ev.id} ev={ev} showAgent={false} />
          ))}
        </details>
      )}
      {answer && <Answer ev={answer} />}
      {turn.failure && <p className="bad">{turn.failure}</p>}
      {running && (
        <p className="turn-foot">
          <Badge state={turn.state} /> {onStop && <button type="button" className="link" onClick={onStop}>{ACTIONS.cancel}</button>}
        </p>
      )}
      {!running && !answer && !turn.failure && <Badge state={turn.state} />}
    </div>
  );
}

function Answer({ ev }: { ev: Ev }) {
  const text = useStreamed(ev);
  return <div className="answer"><Markdown text={withoutBlock(text)} streaming={ev.status === "streaming"} /></div>;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function turnsOf(timeline: Timeline, known: ChatMessages | null): Turn[] {
  const turns = new Map<string, Turn>();
  for (const one of known?.items ?? []) {
    turns.set(one.uid, {
      uid: one.uid,
      name: one.name,
      place: one.place ?? Number.MAX_SAFE_INTEGER,
      question: one.question,
      author: one.author,
      via: one.via,
      state: one.state,
      failure: one.failure?.message ?? null,
      events: [],
    });
  }
  for (const [uid, { question, run }] of timeline.answers) {
    const before = turns.get(uid);
    turns.set(uid, {
      uid,
      name: question.name,
      place: question.place,
      question: before?.question ?? null,
      author: before?.author ?? null,
      via: before?.via ?? null,
      state: run?.state ?? before?.state ?? "pending",
      failure: run?.failure?.message ?? before?.failure ?? null,
      events: [],
    });
  }
  for (const id of timeline.order) {
    const ev = timeline.events.get(id);
    const turn = ev?.question ? turns.get(ev.question.uid) : undefined;
    if (!ev || !turn) continue;
    turn.events.push(ev);
    if (ev.type !== "user_question") continue;
    turn.question = ev.content;
    turn.author = textOf(ev.metadata["author"]) ?? turn.author;
    turn.via = textOf(ev.metadata["via"]) ?? turn.via;
  }
  return [...turns.values()].sort((a, b) => a.place - b.place);
}
