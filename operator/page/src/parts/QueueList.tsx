/** Lists what waits with the reason, and the workers. */
import type { Queue, QueueItem, WorkerItem, WorkersShown } from "../api/types";
import { between, moment } from "../logic/format";
import { investigationLink } from "../logic/route";
import { COLUMNS, EMPTY, SYSTEM, WORKERS } from "../words";
import { HealthBadge } from "./HealthStrip";
import { Empty } from "./parts";

export function QueueList({ queue, now }: { queue: Queue; now: number }) {
  return (
    <>
      <dl className="figures">
        <div><dt>{COLUMNS.queued}</dt><dd>{queue.pending}</dd></div>
        <div><dt>{COLUMNS.running}</dt><dd>{queue.running}</dd></div>
        <div><dt>{COLUMNS.parked}</dt><dd>{queue.parked}</dd></div>
        <div><dt>{COLUMNS.orphaned}</dt><dd>{queue.orphaned}</dd></div>
        <div><dt>{SYSTEM.notAccepted}</dt><dd>{queue.notAccepted}</dd></div>
      </dl>
      {queue.items.length === 0 ? <Empty>{SYSTEM.nothingWaits}</Empty> : (
        <ul className="plain-list waiting">
          {queue.items.map((item) => <Waiting key={`${item.kind}/${item.uid}`} item={item} now={now} />)}
        </ul>
      )}
      {queue.omitted > 0 && <p className="hint">{queue.omitted} {SYSTEM.moreInQueue}</p>}
    </>
  );
}

function Waiting({ item, now }: { item: QueueItem; now: number }) {
  const about = item.investigation ?? item.name;
  const name = `${item.namespace}/${item.name}`;
  return (
    <li>
      <span className="for" title={`${SYSTEM.since} ${moment(item.since)}`}>{between(item.since, null, now)}</span>
      <span className="what-waits">
        {item.kind === "Alert" ? <strong>{name}</strong> : <a href={investigationLink(item.namespace, about)}>{name}</a>}
        <span className="hint"> {item.kind}{item.chain && `, ${item.chainNamespace}/${item.chain}`}{item.replay && `, ${SYSTEM.replay}`}</span>
      </span>
      <span className="why-waits">
        <strong>{item.reason}</strong> {item.message}
      </span>
    </li>
  );
}

export function WorkerList({ workers, now }: { workers: WorkersShown; now: number }) {
  if (workers.items.length === 0) return <Empty>{EMPTY.noWorkers}</Empty>;
  return (
    <ul className="plain-list workers">
      {workers.items.map((worker) => {
        const state = stateOf(worker);
        return (
          <li key={worker.id}>
            <HealthBadge state={WORKERS[state].state}>{WORKERS[state].word}</HealthBadge>
            <strong className="name-of-worker">{worker.host}</strong>
            <span className="hint">
              {SYSTEM.runs} {load(worker.runs, worker.places)}, {SYSTEM.questions} {load(worker.answers, worker.questions)}
              {worker.beatAt && <>, {SYSTEM.heartbeat} <span className="unbroken">{between(worker.beatAt, null, now)} {SYSTEM.ago}</span></>}
              , {SYSTEM.up} <span className="unbroken">{between(worker.startedAt, null, now)}</span>{worker.version && `, ${worker.version}`}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function stateOf(worker: WorkerItem): keyof typeof WORKERS {
  if (!worker.alive) return "lost";
  return worker.draining ? "draining" : "alive";
}

function load(used: number, places: number | null): string {
  return places === null ? String(used) : `${used}/${places}`;
}
