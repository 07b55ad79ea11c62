/** Converts times between the URL (RFC 3339) and a `datetime-local` field (local time zone, to the minute). */

export const FIRST = "2000-01-01T00:00";
export const LAST = "2099-12-31T23:59";

export function toField(moment: string | undefined): string {
  const at = new Date(moment ?? "");
  if (Number.isNaN(at.getTime())) return "";
  const two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function fromField(text: string): string {
  const at = new Date(text);
  return text && !Number.isNaN(at.getTime()) ? at.toISOString().replace(".000Z", "Z") : "";
}
