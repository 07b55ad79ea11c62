/** Defines textures and marks of series, which differ without colour too, and draws the swatch of one. */
import { toneOf, type Series } from "../logic/chart";

/** Strokes over the colour of a series, by its place; the first has none. */
const STROKES = ["", "M-2 2l4-4M0 8l8-8M6 10l4-4", "M2 2h.01M6 6h.01", "M-2 6l4 4M0 0l8 8M6-2l4 4", "M0 2h8M0 6h8", "M2 0v8M6 0v8", "M0 4h8M4 0v8", "M0 0l8 8M8 0l-8 8", "M4 4h.01"];
/** Marks of the results of a suite, by its place: they differ without colour. */
const MARKS = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-4-4h8v8h-8z", "M0-5l5 9h-10z", "M0-5l5 5l-5 5l-5-5z", "M0 5l5-9h-10z", "M-5-2h3v-3h4v3h3v4h-3v3h-4v-3h-3z", "M-5-3l3-2l8 8l-3 2z", "M-5-2h10v4h-10z"];

export function textureOf(id: string, place: number): string {
  return `url(#${id}-${Math.min(place, STROKES.length - 1)})`;
}

export function Textures({ id, series }: { id: string; series: readonly Series[] }) {
  return (
    <svg className="textures" width="0" height="0" aria-hidden="true">
      <defs>
        {series.map((one, place) => (
          <pattern key={place} id={`${id}-${place}`} width="8" height="8" patternUnits="userSpaceOnUse">
            <rect className={toneOf(one, place)} width="8" height="8" />
            <path className="stroke" d={STROKES[place] ?? ""} />
          </pattern>
        ))}
      </defs>
    </svg>
  );
}

export function Swatch({ id, place }: { id: string; place: number }) {
  return (
    <svg className="swatch-box" aria-hidden="true">
      <rect width="100%" height="100%" fill={textureOf(id, place)} />
    </svg>
  );
}

export function markOf(place: number): string {
  return MARKS[place] ?? MARKS[0] ?? "";
}

export function MarkSwatch({ place }: { place: number }) {
  return (
    <svg className="swatch-box" viewBox="-6 -6 12 12" aria-hidden="true">
      <path className={toneOf({}, place)} d={markOf(place)} />
    </svg>
  );
}
