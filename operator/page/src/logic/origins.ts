/** Tells where the arguments of a tool call come from. */

/** One line for each argument of the metadata `provenance`; none where nothing is known. */
export function originsOf(found: unknown): readonly string[] {
  if (!Array.isArray(found)) return [];
  return found.flatMap((one: unknown) => {
    if (typeof one !== "object" || one === null) return [];
    const { argument, origins, destination } = one as Record<string, unknown>;
    if (typeof argument !== "string" || !Array.isArray(origins)) return [];
    return [`${argument}${destination === true ? " (destination)" : ""} from ${origins.map(String).join(", ")}`];
  });
}
