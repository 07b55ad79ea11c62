/** Shortens an event to one line, and finds a quote in its text. */
import type { Ev } from "./timeline";
import { withoutBlock } from "./markdown";

const MOST = 240;

/** Returns the call of a tool, or the first words of a text. */
export function lineOf(ev: Ev): string {
  if (ev.type === "llm_tool_call") {
    const said = String(ev.metadata["arguments"] ?? "");
    return `${String(ev.metadata["name"] ?? "tool")} ${said === "{}" ? "" : said}`.trim().slice(0, MOST);
  }
  const text = withoutBlock(ev.content).slice(0, 4 * MOST).replace(/[#*`|]+/g, "").replace(/\s+/g, " ").trim();
  return text.slice(0, MOST);
}

/** Returns where a quote begins and ends in a text, with any white space between its words; null: it is not there. */
export function placeOf(text: string, quote: string): [number, number] | null {
  const words = quote.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+");
  const found = new RegExp(pattern, "i").exec(text);
  return found ? [found.index, found.index + found[0].length] : null;
}
