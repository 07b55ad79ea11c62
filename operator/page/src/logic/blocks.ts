/** Splits Markdown into blocks: at blank lines, but not within a fence of code. */

/** What may go on after a blank line, or belongs to what is before it: lists, quotes, and indented lines. */
const CONTINUES = /^(\s|>|[-+*](\s|$)|\d{1,9}[.)](\s|$)|\[)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Returns the blocks of a text without the blank lines between them; the last one may be incomplete. */
export function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  for (const line of text.split("\n")) {
    const found = FENCE.exec(line)?.[1] ?? null;
    if (fence === null) fence = found;
    else if (found?.startsWith(fence) && line.trim() === found) fence = null;
    if (fence === null && line.trim() === "" && block.length > 0) {
      blocks.push(block.join("\n"));
      block = [];
    } else if (line.trim() !== "" || block.length > 0) block.push(line);
  }
  blocks.push(block.join("\n"));
  return blocks;
}

/** Joins complete blocks to parts that can be parsed apart: a paragraph or heading that follows ends lists and quotes. */
export function partsOf(blocks: readonly string[]): string[] {
  const parts: string[] = [];
  for (const block of blocks) {
    if (parts.length === 0 || !CONTINUES.test(block)) parts.push(block);
    else parts.push(`${parts.pop()}\n\n${block}`);
  }
  return parts.filter((part) => part !== "");
}
