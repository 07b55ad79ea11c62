/**
 * Finds what a finished run tells people to do next, and the commands to copy.
 *
 * Decision: a finding has no field for it, so the texts are searched: a section with such a heading, a paragraph that
 * begins so, or a sentence "Remedy: …" of the summary. Nothing is made up, and nothing is run.
 */

export type NextSteps = { text: string; commands: readonly string[] };

const WORDS = String.raw`(?:remedy|remediation|next steps?|what to do(?: next)?|recommend(?:ed|ation)s?(?: actions?)?|mitigation|immediate actions?|fix)`;
const HEADING = new RegExp(String.raw`^(#{1,6})\s*(?:\d+\.\s*)?${WORDS}\b.*$`, "im");
const PARAGRAPH = new RegExp(String.raw`^(?:\*\*)?${WORDS}(?:\*\*)?\s*:.*$`, "i");
const SENTENCE = new RegExp(String.raw`\b(?:remedy|next steps?|recommended actions?)\s*:\s*(.+)$`, "is");
const COMMAND = /^(?:\$ )?((?:sudo )?(?:kubectl|helm|argocd|flux|oc|kustomize|docker|crictl|systemctl|journalctl|psql|redis-cli|curl|aws|gcloud|az|terraform)\b[^\n]*)$/;
const MOST_COMMANDS = 5;

export function nextSteps(texts: { summary: string; executive: string | null; analysis: string | null }): NextSteps | null {
  const section = sectionOf(texts.analysis ?? "");
  const paragraph = (texts.executive ?? "").split(/\n\s*\n/).find((one) => PARAGRAPH.test(one.trim()));
  const sentence = SENTENCE.exec(texts.summary)?.[1];
  const commands = commandsOf([section ?? "", texts.executive ?? "", texts.summary].join("\n\n"));
  const text = withoutCommands((section ?? paragraph ?? sentence ?? "").trim(), commands);
  return text || commands.length > 0 ? { text, commands } : null;
}

/** Returns what follows the first heading that announces steps, up to the next heading of its level. */
function sectionOf(text: string): string | null {
  const found = HEADING.exec(text);
  if (!found) return null;
  const rest = text.slice(found.index + found[0].length);
  const end = rest.search(new RegExp(String.raw`^#{1,${found[1]?.length ?? 6}}\s`, "m"));
  return (end < 0 ? rest : rest.slice(0, end)).replace(/(?:final answer:[ \t]*)?```[ \t]*finding\b[^]*$/i, "").trim() || null;
}

/** Returns the commands of code blocks and of code within text, each once. */
export function commandsOf(text: string): string[] {
  const blocks = [...text.matchAll(/```[a-z]*\n([^]*?)```/g)].flatMap((found) => joined(found[1] ?? "").split("\n"));
  const inline = [...text.replace(/```[^]*?```/g, "").matchAll(/`([^`\n]+)`/g)].map((found) => found[1] ?? "");
  const found = [...blocks, ...inline].flatMap((line) => COMMAND.exec(line.trim())?.[1]?.trim() ?? []).filter((one) => one.includes(" "));
  return [...new Set(found)].slice(0, MOST_COMMANDS);
}

/** Removes code blocks that contain nothing but commands: they are shown with their buttons. */
function withoutCommands(text: string, commands: readonly string[]): string {
  const isCommand = (line: string) => line.trim() === "" || commands.includes(COMMAND.exec(line.trim())?.[1]?.trim() ?? "");
  return text.replace(/```[a-z]*\n([^]*?)```/g, (block, lines: string) => (joined(lines).split("\n").every(isCommand) ? "" : block)).trim();
}

/** Joins lines that a backslash continues. */
function joined(text: string): string {
  return text.replace(/\\\n\s*/g, "");
}
