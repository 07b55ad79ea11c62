/** Reads labels, annotations and links of an alert as Alertmanager sends it, to lay it out. */

export type AlertParts = {
  startsAt: string | null;
  labels: readonly (readonly [name: string, value: string])[];
  annotations: readonly (readonly [name: string, value: string])[];
  links: readonly (readonly [name: string, url: string])[];
};

const URL_TEXT = /^https?:\/\/\S+$/;

/** Returns the parts of an alert; null: it is another text. */
export function alertParts(text: string): AlertParts | null {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(found)) return null;
  const [first] = Array.isArray(found["alerts"]) ? found["alerts"] : [found];
  if (!isRecord(first) || !isRecord(first["labels"])) return null;
  const annotations = pairs(first["annotations"]);
  const startsAt = typeof first["startsAt"] === "string" && !Number.isNaN(Date.parse(first["startsAt"])) ? first["startsAt"] : null;
  const named = pairs({ generatorURL: first["generatorURL"], externalURL: found["externalURL"] });
  const isLink = ([, value]: readonly [string, string]) => URL_TEXT.test(value);
  return { startsAt, labels: pairs(first["labels"]), annotations: annotations.filter((one) => !isLink(one)), links: [...annotations, ...named].filter(isLink) };
}

function pairs(found: unknown): (readonly [string, string])[] {
  return isRecord(found) ? Object.entries(found).flatMap(([name, value]) => (typeof value === "string" && value !== "" ? [[name, value] as const] : [])) : [];
}

function isRecord(found: unknown): found is Record<string, unknown> {
  return typeof found === "object" && found !== null && !Array.isArray(found);
}
