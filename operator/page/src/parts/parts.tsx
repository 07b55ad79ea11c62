/** Components that several views share. */
import { useState, type ReactNode } from "react";
import type { Refused } from "../api/client";
import type { Spent } from "../api/types";
import { cost, phase, step, tokens } from "../logic/format";
import { ACTIONS, COLUMNS, VERDICTS } from "../words";

/** Shows the phase of an investigation, or of a part of one (`of="step"`). */
export function Badge({ state, desired, of = "run" }: { state: string; desired?: string | undefined; of?: "run" | "step" }) {
  return (
    <span className={`badge state-${state}`}>
      <span className="dot" aria-hidden="true" />
      {of === "run" ? phase(state, desired) : step(state)}
    </span>
  );
}

/** Shows a verdict as kubectl does; null: there is none yet. */
export function Verdict({ verdict, state }: { verdict: string | null; state: string }) {
  return (
    <span className={`badge state-${state}`}>
      <span className="dot" aria-hidden="true" />
      {verdict ?? VERDICTS.running}
    </span>
  );
}

export function Problem({ error, title }: { error: Refused | Error; title?: string }) {
  return (
    <div className="problem" role="alert">
      {title && <strong>{title} </strong>}
      {error.message}
    </div>
  );
}

export function Copy({ text, label }: { text: () => string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" className="quiet" onClick={() => void copy()}>
      {copied ? ACTIONS.copied : label}
    </button>
  );
}

export function Figures({ spent, calls, tools }: { spent: Spent; calls: number; tools: number }) {
  return (
    <dl className="figures">
      <div>
        <dt>{COLUMNS.tokens}</dt>
        <dd title={`${spent.inputTokens} in, ${spent.outputTokens} out, ${spent.cachedTokens} cached`}>{tokens(spent)}</dd>
      </div>
      <div>
        <dt>{COLUMNS.cost}</dt>
        <dd>{cost(spent)}</dd>
      </div>
      <div>
        <dt>{COLUMNS.modelCalls}</dt>
        <dd>{calls}</dd>
      </div>
      <div>
        <dt>{COLUMNS.toolCalls}</dt>
        <dd>{tools}</dd>
      </div>
    </dl>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <div className="field">
      <label>
        <span className="field-label">{label}</span>
        {children}
      </label>
      {hint && <span className="hint">{hint}</span>}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>;
}

/** Explains the read-only mode of users whose proxy forwards no token. */
export const READ_ONLY =
  "You are signed in by a proxy that does not forward your Kubernetes token, so you have read-only access. Write with kubectl.";

export function ReadOnly() {
  return <p className="hint" role="note">{READ_ONLY}</p>;
}

/** `answer`: which of the reader's questions it answers (tests/browser/answers.js). */
export function Section({ title, side, answer, children }: { title: string; side?: ReactNode; answer?: string; children: ReactNode }) {
  return (
    <section className="card" data-answer={answer}>
      <header className="card-head">
        <h2>{title}</h2>
        <span className="actions">{side}</span>
      </header>
      {children}
    </section>
  );
}
