import { expect, test } from "vitest";
import { originsOf } from "../src/logic/origins";

test("origins are one line an argument, destinations marked", () => {
  const found = [{ argument: "/url", origins: ["A", "X"], destination: true }, { argument: "/n", origins: ["Nowhere"] }];
  expect(originsOf(found)).toEqual(["/url (destination) from A, X", "/n from Nowhere"]);
});

test("what has another form is left out", () => {
  for (const found of [undefined, null, "x", {}, [null], [3], [{ argument: 1, origins: [] }], [{ argument: "/a" }]]) {
    expect(originsOf(found)).toEqual([]);
  }
});
