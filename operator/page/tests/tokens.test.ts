import { describe, expect, it } from "vitest";

const styles = import.meta.glob<string>("../src/style/*.css", { query: "?raw", import: "default", eager: true });
const components = import.meta.glob<string>("../src/**/*.tsx", { query: "?raw", import: "default", eager: true });
const { "../src/style/tokens.css": TOKENS = "", ...sheets } = styles;
const withoutComments = (text: string) => text.replace(/\/\*[^]*?\*\//g, "");

/** Returns the raw colours and pixel sizes of a file; those of a media query cannot be tokens. */
function rawValues(text: string): string[] {
  const rules = withoutComments(text).replace(/@media[^{]*/g, "");
  const named = /:\s*(?:white|black|red|green|blue|gr[ae]y|orange|purple|yellow)\s*[;}"]/g;
  return [/#[0-9a-f]{3,8}(?=[\s;,)"'}])/gi, /\b(?:rgba?|hsla?|oklch|lab)\([^)]*\)/g, /(?<![\w-])\d*\.?\d+px/g, named].flatMap((wrong) => rules.match(wrong) ?? []);
}

describe("raw values", () => {
  it.each([["color: #fff;", 1], ["color: rgb(1, 2, 3);", 1], ["margin: 3px 0.5px;", 2], ["color: white;", 1], ["color: var(--text); margin: 0 auto;", 0], ["@media (max-width: 640px) { }", 0]])("are found in %j", (rule, times) => {
    expect(rawValues(rule)).toHaveLength(times);
  });

  it.each(Object.entries(sheets))("are in tokens.css, not in %s", (_name, text) => {
    expect(text).not.toBe("");
    expect(rawValues(text)).toEqual([]);
  });

  it.each(Object.entries(components))("are in tokens.css, not in the styles of %s", (_name, text) => {
    const inline = text.match(/style=\{\{[^]*?\}\}|\b(?:fill|stroke|color)="[^"]*"/g) ?? [];
    expect(inline.filter((style) => rawValues(style).length > 0 || !style.startsWith("style"))).toEqual([]);
  });
});

describe("tokens", () => {
  const all = Object.values(styles).join("\n");
  const declared = [...TOKENS.matchAll(/^ {2}(--[\w-]+):/gm)].map((found) => found[1]);
  const used = [...all.matchAll(/var\((--[\w-]+)/g)].map((found) => found[1]);

  it("are declared where they are used, and used where they are declared", () => {
    expect([...new Set(used)].sort()).toEqual([...declared].sort());
  });
});

type Rgb = [number, number, number];

/** Returns the colour of a token in a theme (0 light, 1 dark). */
function colour(name: string, theme: 0 | 1): Rgb {
  const pair = new RegExp(`^ {2}--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\);`, "m").exec(TOKENS);
  const alias = new RegExp(`^ {2}--${name}: var\\(--([\\w-]+)\\);`, "m").exec(TOKENS)?.[1];
  if (alias) return colour(alias, theme);
  const hex = pair?.[theme + 1];
  if (!hex) throw new Error(`--${name} is no pair of colours`);
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Rgb;
}

/** Returns the contrast of two colours, as WCAG 2.2 defines it. */
function contrast(one: Rgb, two: Rgb): number {
  const luminance = (rgb: Rgb) => {
    const [r = 0, g = 0, b = 0] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low = 0, high = 0] = [luminance(one), luminance(two)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ["ground", "card", "sunk"];
const TEXTS = ["text", "soft", "accent", "good", "warn", "bad", "violet", "live"];
const PAIRS: [string, string, number][] = [
  ...TEXTS.flatMap((text) => GROUNDS.map((ground): [string, string, number] => [text, ground, 4.5])),
  ...["accent", "good", "warn", "bad"].flatMap((tone): [string, string, number][] => [[tone, `${tone}-soft`, 4.5], ["text", `${tone}-soft`, 4.5], ["soft", `${tone}-soft`, 4.5]]),
  ["on-accent", "accent", 4.5],
  ["on-bad", "bad", 4.5],
  ...GROUNDS.map((ground): [string, string, number] => ["line-field", ground, 3]),
  ...["1", "2", "3", "4", "5", "6", "7", "8", "others"].map((series): [string, string, number] => [`series-${series}`, "card", 3]),
];

describe("contrast", () => {
  it("is computed as WCAG does", () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
    expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
  });

  it.each(PAIRS)("of %s on %s is at least %d in both themes", (front, ground, least) => {
    for (const theme of [0, 1] as const) expect(contrast(colour(front, theme), colour(ground, theme))).toBeGreaterThanOrEqual(least);
  });
});
