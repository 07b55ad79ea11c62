/** Splits Markdown into blocks: at blank lines, but not within a fence of code. */

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
