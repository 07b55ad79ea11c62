/** Shows when a schedule creates alerts, and which of them are not finished. */
import type { ScheduleItem } from "../api/types";
import { moment } from "../logic/format";
import { COLUMNS, READY } from "../words";

export function ScheduleDetails({ schedule }: { schedule: ScheduleItem }) {
  return (
    <>
      <span className="hint"> {schedule.schedule} ({schedule.timeZone}), {schedule.alertType}</span>
      {schedule.suspended && <strong> {READY.suspended}</strong>}
      <p className="stages-line">
        {COLUMNS.lastTime}: {schedule.last ? moment(schedule.last) : "–"}; {COLUMNS.nextTime}: {schedule.next ? moment(schedule.next) : "–"}
        {schedule.active.length > 0 && <>; {COLUMNS.unfinished}: {schedule.active.join(", ")}</>}
      </p>
    </>
  );
}
