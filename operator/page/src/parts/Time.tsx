/** Shows a moment: how long ago, and on demand the date and time with the zone. */
import { ago, moment } from "../logic/format";

export function Ago({ at, now }: { at: string; now: number }) {
  return <time dateTime={at} title={moment(at)}>{ago(at, now)}</time>;
}
