/** Shows a text with what was searched for marked. */
import { piecesOf } from "../logic/marks";

export function Marked({ text, search, whole = false }: { text: string; search: string; whole?: boolean }) {
  return piecesOf(text, search, whole).map((piece, place) => (piece.hit ? <mark key={place}>{piece.text}</mark> : piece.text));
}
