/** Tells whether the server serves another build of the web UI than the one that is open. */
const SCRIPT = /assets\/([\w.-]+\.js)/g;

/** Returns the names of the scripts that a document loads; each name contains a hash of its contents. */
export function scriptsOf(html: string): string[] {
  return [...html.matchAll(SCRIPT)].map((one) => one[1] ?? "");
}

/** Returns whether a served document loads none of the scripts of the open one. A document without scripts tells nothing. */
export function isOther(open: readonly string[], served: string): boolean {
  const scripts = scriptsOf(served);
  return open.length > 0 && scripts.length > 0 && !scripts.some((one) => open.includes(one));
}
