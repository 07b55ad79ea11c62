/** Converts an investigation to Markdown, for pasting into a ticket. */
import type { Finding, Investigation } from "../api/types";
import { EVENTS, RETRIES, SECTIONS, SUPPORT } from "../words";
import { managers } from "./approval";
import { shownConfidence } from "./confidence";
import { cost, duration, moment, phase, tokens, wordOf, words } from "./format";
import { supportOf, writerOf } from "./support";
import type { Ev, Timeline } from "./timeline";

/** Wraps a text in a code fence that it cannot close. */
export function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((found) => found[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}

function mark(claim: Finding["claims"][number]): string {
  const support = supportOf(claim);
  if (support === "supported") return "✓";
  const names = support === "ungrounded" ? ` (${claim.ungrounded.join(", ")})` : "";
  return `⚠ ${SUPPORT[support].toLowerCase()}${names}:`;
}

export function findingAsMarkdown(finding: Finding): string {
  const lines = [`**Finding** (${shownConfidence(finding)}): ${finding.summary}`];
  for (const claim of finding.claims) {
    lines.push(`- ${mark(claim)} ${claim.text}`);
    for (const citation of claim.citations) {
      const where = [citation.stage, citation.agent, citation.tool].filter(Boolean).join("/") || citation.callId;
      lines.push(`  - ${where}: “${citation.quote}”${writerOf(citation) ? ` [${writerOf(citation)}]` : ""}${citation.reason ? ` (${citation.reason})` : ""}`);
    }
  }
  for (const change of finding.changesForGit ?? []) {
    lines.push("", `**${SECTIONS.changeForGit}**: ${managers(change)}`, "", fenced(change.patch, "diff"));
  }
  return lines.join("\n");
}

/** Removes the structured block at the end of a text: it is for programs, and shown as the finding. */
export function withoutBlock(text: string): string {
  return text.replace(/(?:final answer:[ \t]*)?```[ \t]*finding\b[^]*$/i, "").trimEnd();
}

export function eventAsMarkdown(ev: Ev): string {
  const who = [ev.stage, ev.agent].filter(Boolean).join("/");
  const head = `**${wordOf(EVENTS, ev.type) ?? words(ev.type)}**${who ? ` · ${who}` : ""} · ${moment(ev.createdAt)}`;
  switch (ev.type) {
    case "llm_tool_call": {
      const said = `${String(ev.metadata["name"] ?? "")} ${String(ev.metadata["arguments"] ?? "")}`.trim();
      return `${head} · \`${said.replaceAll("`", "'")}\`\n\n${ev.content ? fenced(ev.content) : ""}`.trimEnd();
    }
    case "final_analysis":
      return `${head}\n\n${withoutBlock(ev.content)}`;
    default:
      return `${head}\n\n${ev.content.trim()}`;
  }
}

export function investigationAsMarkdown(item: Investigation, timeline: Timeline, finding: Finding | null): string {
  const run = timeline.run;
  const state = run?.state ?? item.state;
  const parts = [`# ${item.alertType}: ${item.namespace}/${item.name}`];
  const others = [item.retryOf && `${RETRIES.of} ${item.retryOf.name}`, item.retriedBy && `${RETRIES.by} ${item.retriedBy.name}`].filter((one): one is string => Boolean(one));
  const facts = [`accepted ${moment(item.acceptedAt)}`, ...others, `phase ${phase(state)}`, `chain ${item.chain}`, `${tokens(item.spent)} tokens`, `cost ${cost(item.spent)}`];
  const finishedAt = run?.finishedAt ?? item.finishedAt;
  if (finishedAt) facts.push(`finished ${moment(finishedAt)}`);
  if (item.startedAt && finishedAt) facts.push(duration(Date.parse(finishedAt) - Date.parse(item.startedAt)));
  parts.push(facts.join(" · "));
  if (finding) parts.push(findingAsMarkdown(finding));
  const summary = run?.executiveSummary ?? item.executiveSummary;
  if (summary) parts.push(`## Executive summary\n\n${summary.trim()}`);
  const failure = run?.failure ?? item.failure;
  if (failure) parts.push(`**${failure.reason}**: ${failure.message}`);
  parts.push(`## Alert\n\n${fenced(item.alert)}`);
  const told = timeline.order.map((id) => timeline.events.get(id)).filter((ev): ev is Ev => ev !== undefined);
  if (told.length > 0) parts.push(`## Timeline\n\n${told.map(eventAsMarkdown).join("\n\n---\n\n")}`);
  return `${parts.join("\n\n")}\n`;
}
