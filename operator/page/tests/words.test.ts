import ts from "typescript";
import { describe, expect, it } from "vitest";
import * as words from "../src/words";
import { author, phase, step } from "../src/logic/format";

const components = import.meta.glob<string>("../src/**/*.tsx", { query: "?raw", import: "default", eager: true });
const all = import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });
const PHASES: string[] = [...Object.values(words.PHASES), ...Object.values(words.STEPS)];
/** Elements whose text is from the table. */
const ELEMENTS = /^(button|option|h[1-4]|th|dt|summary|Empty|NavLink)$/;
const ATTRIBUTES: Record<string, RegExp> = { title: /^(Section|Problem)$/, none: /^List$/, label: /^Copy$/ };

/** Returns the words that a component contains itself: text of the elements above, and names of phases anywhere. */
function ownWords(source: string): string[] {
  const found: string[] = [];
  const tagOf = (node: ts.Node) => (ts.isJsxElement(node) ? node.openingElement.tagName.getText() : "");
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node) && /\p{L}{2}/u.test(node.text) && ELEMENTS.test(tagOf(node.parent)) && node.parent.getChildren().length > 0) found.push(node.text.trim());
    if (ts.isStringLiteralLike(node)) {
      const place = node.parent;
      const wish = ts.isBinaryExpression(place) && /(?:desired\w*|asked)$/i.test(place.left.getText()); // a value of the API
      if (PHASES.includes(node.text) && !wish) found.push(node.text);
      if (ts.isJsxAttribute(place) && ATTRIBUTES[place.name.getText()]?.test(place.parent.parent.tagName.getText()) && /\p{L}{2}/u.test(node.text)) found.push(node.text);
      if (ts.isJsxExpression(place) && ELEMENTS.test(tagOf(place.parent)) && /\p{L}{2}/u.test(node.text)) found.push(node.text);
      if (ts.isConditionalExpression(place) && place.condition !== node && ts.isJsxExpression(place.parent) && ELEMENTS.test(tagOf(place.parent.parent)) && /\p{L}{2}/u.test(node.text)) found.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("view.tsx", source, ts.ScriptTarget.ES2022, true, ts.ScriptKind.TSX));
  return found;
}

describe("words of a view", () => {
  it.each([
    ["<button>Stop it</button>", ["Stop it"]],
    ["<Empty>{late ? \"Too late\" : EMPTY.noEvents}</Empty>", ["Too late"]],
    ["<Section title=\"Finding\" />", ["Finding"]],
    ["<p title={state === \"Succeeded\" ? \"a\" : \"b\"} />", ["Succeeded"]],
    ["<button>{ACTIONS.cancel} ×</button>", []],
  ])("are noticed in %s", (source, expected) => {
    expect(ownWords(source)).toEqual(expected);
  });

  it.each(Object.entries(components))("are from the table in %s", (_name, source) => {
    expect(ownWords(source).filter((one) => one !== "TARSy")).toEqual([]);
  });

  it("are all used", () => {
    const text = Object.entries(all).filter(([name]) => !name.endsWith("/words.ts")).map(([, source]) => source).join("\n");
    const whole = ["PHASES", "STEPS", "CONFIDENCE", "EVENTS", "SORT", "GROUPS", "MEASURE_WORDS", "PERIODS", "CERTAINTY", "ORDERS", "NOUNS", "SUPPORT", "INTEGRITY", "RUNGS", "MARKS", "JUDGES", "FLAWS", "SEVERITIES", "MATCHES", "ENDINGS", "OUTCOMES", "REVIEW_STATE_WORDS", "REVIEW_VERDICTS", "SCORE_STATE_WORDS", "HEALTH", "SHOWN_HEALTH", "WORKERS"]; // looked up by a value of the API, or listed
    const unused = Object.entries(words).flatMap(([table, entries]) =>
      whole.includes(table) ? [] : Object.keys(entries).filter((name) => !text.includes(`${table}.${name}`)).map((name) => `${table}.${name}`),
    );
    expect(unused).toEqual([]);
  });
});

describe("phases", () => {
  it("are those of kubectl, for every state that the API sends", () => {
    expect(["pending", "running", "completed", "failed", "cancelled", "timed_out"].map((state) => phase(state))).toEqual(["Queued", "Running", "Succeeded", "Failed", "Cancelled", "TimedOut"]);
    expect(phase("running", "Concluded")).toBe("Concluding");
    expect(phase("completed", "Concluded")).toBe("Succeeded");
  });

  it("of stages that did not begin are Pending, as in kubectl", () => {
    expect([step("pending"), step("started"), step("interrupted")]).toEqual(["Pending", "Running", "Interrupted"]);
  });

  it("that only a newer server knows are shown as words", () => {
    expect([phase("waiting_for_approval"), step("waiting_for_approval"), phase("toString")]).toEqual(["waiting for approval", "waiting for approval", "toString"]);
  });
});

describe("authors", () => {
  it("are short where they are ServiceAccounts", () => {
    expect([author("system:serviceaccount:shop:alerts"), author("ann@example.org")]).toEqual(["shop:alerts", "ann@example.org"]);
  });
});
