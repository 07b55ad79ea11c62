/** Splits a text at what was searched for, so that it can be marked. */

export type Piece = { text: string; hit: boolean };

/** Returns the pieces of a text; hits are the words of the search, or with `whole` the search as it is, in any case. */
export function piecesOf(text: string, search: string, whole: boolean): Piece[] {
  const wanted = (whole ? [search.trim()] : search.split(/\s+/).map((word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""))).filter(Boolean);
  if (wanted.length === 0) return [{ text, hit: false }];
  const pattern = new RegExp(`(${wanted.sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
  // A pattern with one group makes every second piece a hit.
  return text.split(pattern).map((piece, place) => ({ text: piece, hit: place % 2 === 1 })).filter((piece) => piece.text !== "");
}
