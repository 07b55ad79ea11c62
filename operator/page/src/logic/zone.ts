/** Selects the time zone in which all times are shown and copied: that of the browser, or UTC. */
export type Zone = "local" | "utc";

const KEY = "tarsy-zone";

export function savedZone(): Zone {
  return globalThis.localStorage?.getItem(KEY) === "utc" ? "utc" : "local";
}

export function saveZone(zone: Zone): void {
  if (zone === "utc") localStorage.setItem(KEY, zone);
  else localStorage.removeItem(KEY);
}

/** Returns the option of Intl formats for the selected zone. */
export function inZone(): { timeZone?: string } {
  return savedZone() === "utc" ? { timeZone: "UTC" } : {};
}

/** Returns the name of the selected zone for the API; UTC where the browser does not know its own. */
export function zoneName(): string {
  const name = savedZone() === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name && name !== "Etc/Unknown" ? name : "UTC";
}
