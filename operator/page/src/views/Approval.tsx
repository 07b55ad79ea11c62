/** Shows a call that waits for people: its change beside what it rests on, and the decision about it. */
import { useState, type FormEvent } from "react";
import { post, Refused } from "../api/client";
import type { ApprovalEvidence, ApprovalView } from "../api/types";
import { hindrance, nameToType, notEnforced, stateOfApproval, waits, type Decision } from "../logic/approval";
import { author, moment, pretty } from "../logic/format";
import { originsOf } from "../logic/origins";
import { approvalLink, investigationLink } from "../logic/route";
import { DiffText } from "../parts/DiffText";
import { useGet, useNow, useTitle, useWorld } from "../parts/context";
import { Empty, Field, Problem, ReadOnly, Section, Verdict } from "../parts/parts";
import { ACTIONS, APPROVAL, EMPTY, INTEGRITY, SECTIONS, VIEWS } from "../words";
import { Left } from "./Approvals";

const SECONDS = 3;

export default function ApprovalPage({ namespace, name }: { namespace: string; name: string }) {
  useTitle(name);
  const path = `/namespaces/${namespace}/toolapprovals/${name}`;
  const loaded = useGet<ApprovalView>(path, {}, SECONDS);
  const evidence = useGet<ApprovalEvidence>(`${path}/evidence`);
  const found = loaded.value;
  const now = useNow(found !== null && waits(found));
  const against = found && notEnforced(found);
  return (
    <div className="view wide" aria-busy={loaded.loading || evidence.loading || undefined}>
      <div className="title-row">
        <h1>{found ? `${found.server}.${found.tool}` : name}</h1>
        {found && <Verdict verdict={found.phase} state={stateOfApproval(found.phase)} />}
        {found?.access === "destructive" && <span className="bad">{APPROVAL.destructive}</span>}
        <span className="spring" />
        <a href="#/approvals">{VIEWS.approvals}</a>
      </div>
      {loaded.error && <Problem error={loaded.error} />}
      {found && (
        <>
          <p className="hint">{namespace}/{name}{found.undoes && <>, {APPROVAL.undoes} <a href={approvalLink(namespace, found.undoes)}>{found.undoes}</a></>}</p>
          <div className="facts">
            <span>{targets(found)}</span>
            <span>
              {found.run.kind === "Investigation" ? <a href={investigationLink(namespace, found.run.name)}>{found.run.name}</a> : found.run.name}, {APPROVAL.startedBy} {found.requesters.map(author).join(", ")}
            </span>
            <span>{found.approvals} {APPROVAL.of} {found.required} {APPROVAL.approvals}</span>
            {waits(found) && <Left item={found} now={now} />}
          </div>
          {against && <div className="problem">{APPROVAL.notCounted} {against}</div>}
          {!waits(found) && <div className="problem soft">{found.outcome ?? found.phase}{found.decidedBy.length > 0 && ` (${found.decidedBy.map(author).join(", ")})`}</div>}
          <div className="two-sides">
            <Change view={found} />
            <div className="decide-side">
              {waits(found) && <Decide key={found.argumentsDigest} view={found} path={path} now={now} onDecided={loaded.again} />}
              <Decisions view={found} />
              <Grounds view={found} evidence={evidence.value} error={evidence.error} />
            </div>
          </div>
          <p className="hint">{APPROVAL.digest} <code>{found.argumentsDigest}</code></p>
        </>
      )}
    </div>
  );
}

function targets(view: ApprovalView): string {
  const named = view.targets.map((one) => `${one.kind}/${one.name}${one.namespace ? ` ${APPROVAL.inNamespace} ${one.namespace}` : ""}${one.managedBy ? `, ${APPROVAL.managedBy} ${one.managedBy}` : ""}`);
  return named.join(", ") || view.target || APPROVAL.noTarget;
}

function Change({ view }: { view: ApprovalView }) {
  return (
    <Section title={SECTIONS.change}>
      {view.preview.diff ? (
        <DiffText text={view.preview.diff} label={SECTIONS.change} />
      ) : (
        <Empty>{EMPTY.noPreview}</Empty>
      )}
      {view.preview.note && <p className="hint">{view.preview.note}</p>}
      <h3>{SECTIONS.arguments}</h3>
      <pre tabIndex={0} aria-label={SECTIONS.arguments}>{pretty(view.arguments) || "{}"}</pre>
      {originsOf(view.provenance).map((line) => <p className="hint" key={line}>{line}</p>)}
      <h3>{SECTIONS.undo}</h3>
      {view.undo?.tool ? (
        <pre tabIndex={0} aria-label={SECTIONS.undo}>{view.server}.{view.undo.tool} {pretty(view.undo.arguments ?? "{}")}</pre>
      ) : (
        <p className="hint">{view.undo ? `${APPROVAL.noUndo} ${view.undo.note ?? ""}` : APPROVAL.undeclared}</p>
      )}
    </Section>
  );
}

function Grounds({ view, evidence, error }: { view: ApprovalView; evidence: ApprovalEvidence | null; error: Refused | null }) {
  const missing = evidence ? view.evidence.filter((id) => !evidence.items.some((one) => one.id === id)) : [];
  return (
    <Section title={SECTIONS.reason}>
      <p>{view.claim}</p>
      {error && <Problem error={error} title={APPROVAL.notShown} />}
      {evidence?.items.map((one) => (
        <div key={one.id} className="cited">
          <h3>{one.tool} <span className="hint">{one.stage}, {one.agent}</span></h3>
          <p className="hint">{INTEGRITY[one.integrity]}</p>
          {one.arguments.trim() !== "{}" && <code>{one.arguments}</code>}
          <pre tabIndex={0} aria-label={one.tool}>{one.result}{one.truncated && ` ${APPROVAL.cut}`}</pre>
        </div>
      ))}
      {missing.length > 0 && <p className="bad">{APPROVAL.gone} {missing.join(", ")}</p>}
    </Section>
  );
}

function Decisions({ view }: { view: ApprovalView }) {
  if (view.decisions.length === 0) return null;
  return (
    <Section title={SECTIONS.decisions}>
      <ul className="plain-list">
        {view.decisions.map((one) => (
          <li key={one.username}>
            <strong>{author(one.username)}</strong>: {one.decision}{one.reason && <>. {one.reason}</>} {one.at && <span className="hint">{moment(one.at)}</span>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Decide({ view, path, now, onDecided }: { view: ApprovalView; path: string; now: number; onDecided: () => void }) {
  const { session } = useWorld();
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<Refused | null>(null);
  if (!session.hasToken) return <ReadOnly />;
  const wanted = nameToType(view);
  const why = { Approve: hindrance(view, "Approve", session.username, now), Reject: hindrance(view, "Reject", session.username, now) };
  const send = async (decision: Decision) => {
    setSending(true);
    setError(null);
    try {
      // The digest of what is drawn: what was shown is what is signed.
      await post(`${path}/decisions`, { decision, argumentsDigest: view.argumentsDigest, ...(reason.trim() ? { reason: reason.trim() } : {}) });
      onDecided();
    } catch (refused) {
      setError(refused as Refused);
    }
    setSending(false);
  };
  const approve = (event: FormEvent) => {
    event.preventDefault();
    void send("Approve");
  };
  return (
    <form className="form card decide" aria-label={SECTIONS.decision} onSubmit={approve}>
      <h2>{SECTIONS.decision}</h2>
      {why.Approve && <p role="note">{why.Approve}</p>}
      {!why.Reject && (
        <Field label={APPROVAL.why}>
          <input value={reason} maxLength={1024} onChange={(event) => setReason(event.target.value)} />
        </Field>
      )}
      {!why.Approve && wanted && (
        <Field label={`${APPROVAL.typeName} ${wanted}`}>
          <input value={typed} autoComplete="off" spellCheck={false} onChange={(event) => setTyped(event.target.value)} />
        </Field>
      )}
      {error && <Problem error={error} />}
      <div className="actions">
        <button type="submit" className={wanted ? "danger" : "primary"} disabled={sending || why.Approve !== null || (wanted !== null && typed.trim() !== wanted)}>{ACTIONS.approve}</button>
        <button type="button" disabled={sending || why.Reject !== null} onClick={() => void send("Reject")}>{ACTIONS.reject}</button>
      </div>
    </form>
  );
}
