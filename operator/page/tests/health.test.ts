import { describe, expect, it } from "vitest";
import type { ObjectHealth } from "../src/api/types";
import { cellsOf, describedCell, describedHealth, firstShown, hoursOf, type HealthRow } from "../src/logic/health";

const row = (health: HealthRow["health"], cells: number, changes: Partial<HealthRow> = {}): HealthRow => ({ cells, health, since: null, type: "", reason: "", message: "", address: null, transitions: 0, ...changes });
const DAY = { since: "2026-11-22T00:00:00Z", cellMinutes: 60 };
const DOWN = { reason: "Unreachable", message: "It does not respond.", address: "http://tools:8080", since: "2026-11-22T02:10:00Z", transitions: 2 };

describe("cells", () => {
  it("are all of the period, with their times", () => {
    const cells = cellsOf([row("NotRecorded", 1), row("Ready", 2), row("Degraded", 1, DOWN)], DAY);
    expect(cells.map((one) => one.health)).toEqual(["NotRecorded", "Ready", "Ready", "Degraded"]);
    expect([cells[3]?.from, cells[3]?.to]).toEqual(["2026-11-22T03:00:00.000Z", "2026-11-22T04:00:00.000Z"]);
    expect(cells.map((one) => one.first)).toEqual([true, true, false, true]);
  });

  it("show the last problem first, and the last cell without one", () => {
    expect(firstShown(cellsOf([row("Ready", 2), row("NotReady", 1), row("Ready", 3)], DAY))).toBe(2);
    expect(firstShown(cellsOf([row("Unknown", 2), row("Ready", 3)], DAY))).toBe(4);
    expect(firstShown([])).toBe(-1);
  });

  it("tell time, health, reason and message of a problem, and no reason of a healthy one", () => {
    const [ready, down, still] = cellsOf([row("Ready", 1, { reason: "Usable", message: "A run would start." }), row("Degraded", 2, DOWN)], DAY);
    expect(describedCell(ready!)).toMatch(/^22 Nov 2026.* to 22 Nov 2026.*: Ready\.$/);
    expect(describedCell(down!)).toMatch(/: Degraded since 22 Nov 2026.*, 2 changes\. Unreachable\. It does not respond\. \(http:\/\/tools:8080\)$/);
    expect(describedCell(still!)).not.toContain("2 changes");
  });
});

describe("a period", () => {
  const health = (history: HealthRow[], transitions: number) => ({ history, transitions }) as ObjectHealth;

  it("is told in a few words", () => {
    expect(describedHealth(health([row("Ready", 24)], 0))).toBe("Ready, 0 changes");
    expect(describedHealth(health([row("Ready", 20), row("NotReady", 1), row("Degraded", 3)], 1))).toBe("4 of 24 parts with a problem, 1 change");
  });

  it("is a day unless the address names a week", () => {
    expect(["", "7d", "other"].map(hoursOf)).toEqual([24, 168, 24]);
  });
});
