/** Describes the health of configuration objects over time, cell by cell. */
import type { ObjectHealth, ObjectHealthShown } from "../api/types";
import { HEALTH_OVER_TIME, SHOWN_HEALTH } from "../words";
import { counted, moment } from "./format";
import { idOf } from "./system";

export type HealthPeriod = { since: string; cellMinutes: number };
export type HealthRow = ObjectHealth["history"][number];
export type HealthCell = HealthRow & { from: string; to: string; first: boolean };

const DAY = 24;
const WEEK = 168;

/** Returns the hours of the period in the address; a day where it names none. */
export function hoursOf(period: string): number {
  return period === "7d" ? WEEK : DAY;
}

/** Returns the health of each object by its id in the URL. */
export function healthByObject(shown: ObjectHealthShown): Map<string, ObjectHealth> {
  return new Map(shown.items.map((item) => [idOf(item), item]));
}

/** Returns the cells of a period, the oldest first. */
export function cellsOf(history: readonly HealthRow[], period: HealthPeriod): HealthCell[] {
  const length = period.cellMinutes * 60_000;
  const begin = Date.parse(period.since);
  const found: HealthCell[] = [];
  for (const row of history) {
    for (let place = 0; place < row.cells; place += 1) {
      const from = begin + found.length * length;
      found.push({ ...row, from: new Date(from).toISOString(), to: new Date(from + length).toISOString(), first: place === 0 });
    }
  }
  return found;
}

const isProblem = (row: HealthRow) => row.health === "NotReady" || row.health === "Degraded";

/** Returns the cell that is shown first: the last one with a problem, else the last one. */
export function firstShown(cells: readonly HealthCell[]): number {
  const problem = cells.findLastIndex(isProblem);
  return problem < 0 ? cells.length - 1 : problem;
}

/** Describes a cell: its time, its health, since when and why. */
export function describedCell(cell: HealthCell): string {
  const changes = cell.first && cell.transitions > 0 ? `, ${counted(cell.transitions, "changes")}` : "";
  const since = cell.since ? ` ${HEALTH_OVER_TIME.since} ${moment(cell.since)}` : "";
  return [`${moment(cell.from)} ${HEALTH_OVER_TIME.until} ${moment(cell.to)}: ${SHOWN_HEALTH[cell.health]}${since}${changes}.`, reasonOf(cell)].filter(Boolean).join(" ");
}

/** Returns reason, message and address of a row of cells, where it has a problem or is unknown. */
export function reasonOf(row: HealthRow): string {
  if (row.health === "Ready" || row.health === "NotRecorded") return "";
  const address = row.address && !row.message.includes(row.address) ? `(${row.address})` : "";
  return [row.reason && `${row.reason}.`, row.message, address].filter(Boolean).join(" ");
}

/** Describes a period in a few words, for people who do not see the strip. */
export function describedHealth(health: ObjectHealth): string {
  const all = health.history.reduce((sum, row) => sum + row.cells, 0);
  const bad = health.history.filter(isProblem).reduce((sum, row) => sum + row.cells, 0);
  const words = health.history.length === 1 && health.history[0] ? SHOWN_HEALTH[health.history[0].health] : `${bad} ${HEALTH_OVER_TIME.of} ${all} ${HEALTH_OVER_TIME.withProblems}`;
  return `${words}, ${counted(health.transitions, "changes")}`;
}
