/** Finds commands of the palette: views, actions and investigations. */
export type Command = {
  id: string;
  /** Name of the group under which it is listed. */
  group: string;
  name: string;
  hint?: string;
  /** A link to follow, or what to do. */
  act: string | (() => void);
};

/** Returns the commands whose name, group or hint contains all words of a text, those whose name begins with it first. */
export function found(commands: readonly Command[], text: string): Command[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const fits = commands.filter(({ name, group, hint = "" }) => {
    const all = `${name} ${group} ${hint}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const first = (one: Command) => (one.name.toLowerCase().startsWith(wanted) ? 0 : 1);
  return words.length === 0 ? fits : [...fits].sort((a, b) => first(a) - first(b));
}

/** Returns the place after `step` moves through a list of `length` entries, which is a ring. */
export function moved(place: number, step: number, length: number): number {
  return length === 0 ? 0 : (place + step + length) % length;
}
