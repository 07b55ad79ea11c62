/** Lists the calls that wait for people. */
import { useEffect, useState } from "react";
import { get, Refused } from "../api/client";
import type { ApprovalItem, ApprovalPage } from "../api/types";
import { queued, stateOfApproval, timeLeft } from "../logic/approval";
import { author } from "../logic/format";
import { approvalLink, investigationLink } from "../logic/route";
import { scope, useNow, useTitle, useWorld } from "../parts/context";
import { Empty, Problem, Verdict } from "../parts/parts";
import { APPROVAL, EMPTY, VIEWS } from "../words";

const SECONDS = 5;

export default function Approvals() {
  useTitle(VIEWS.approvals);
  const { items, error } = useQueue(scope(useWorld()));
  const now = useNow(true);
  return (
    <div className="view wide" aria-busy={(items === null && !error) || undefined}>
      <h1>{VIEWS.approvals}</h1>
      {error && <Problem error={error} />}
      {items?.length === 0 && <Empty>{EMPTY.noApprovals}</Empty>}
      {items && items.length > 0 && (
        <ul className="approval-list">
          {items.map((one) => (
            <li key={one.uid} className="card">
              <div className="title-row">
                <h2><a href={approvalLink(one.namespace, one.name)}>{one.server}.{one.tool}{one.target && <> {APPROVAL.on} {one.target}</>}</a></h2>
                <Verdict verdict={one.phase} state={stateOfApproval(one.phase)} />
                {one.access === "destructive" && <span className="bad">{APPROVAL.destructive}</span>}
              </div>
              <p className="hint">
                {one.namespace}, {one.run.kind === "Investigation" ? <a href={investigationLink(one.namespace, one.run.name)}>{one.run.name}</a> : one.run.name}, {APPROVAL.startedBy} {one.requesters.map(author).join(", ")}
              </p>
              <p>
                {one.approvals} {APPROVAL.of} {one.required} {APPROVAL.approvals}, <Left item={one} now={now} />
              </p>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Shows how long people can still decide. */
export function Left({ item, now }: { item: ApprovalItem; now: number }) {
  const left = timeLeft(item, now);
  return left === null ? <span className="bad">{APPROVAL.over}</span> : <span className="time-left">{left} {APPROVAL.left}</span>;
}

/** Reads the queue of each namespace by itself: who decides in one may be nobody in the next. */
function useQueue(namespaces: readonly string[]): { items: ApprovalItem[] | null; error: Refused | null } {
  const [found, setFound] = useState<{ items: ApprovalItem[] | null; error: Refused | null }>({ items: null, error: null });
  const asked = namespaces.join();
  useEffect(() => {
    const abort = new AbortController();
    const read = async () => {
      const each = asked === "" ? [undefined] : asked.split(",");
      const pages = await Promise.allSettled(each.map((namespace) => get<ApprovalPage>("/toolapprovals", { namespace, limit: 200 }, abort.signal)));
      if (abort.signal.aborted) return;
      const good = pages.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const refused = pages.flatMap((one) => (one.status === "rejected" && one.reason instanceof Refused ? [one.reason] : []));
      const telling = good.length === 0 ? refused[0] : refused.find((one) => one.status !== 403);
      setFound((before) => ({ items: good.length > 0 ? queued(good.flatMap((page) => page.items)) : before.items, error: telling ?? null }));
    };
    setFound({ items: null, error: null });
    void read();
    const timer = setInterval(() => document.hidden || void read(), SECONDS * 1000);
    return () => (clearInterval(timer), abort.abort());
  }, [asked]);
  return found;
}
