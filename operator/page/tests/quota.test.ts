/** Bars of quotas: what is spent and reserved, at the limit and around it. */
import { describe, expect, it } from "vitest";
import type { QuotaItem } from "../src/api/types";
import { barsOf } from "../src/logic/quota";

const quota = (...limits: QuotaItem["limits"]): QuotaItem => ({
  namespace: "shop", name: "month", uid: "q", ready: true, conditions: [], period: "Month", onExceeded: "Queue", warnAt: 80, limits,
  starts: "2026-11-01T00:00:00Z", ends: "2026-12-01T00:00:00Z", warned: false, exceeded: false, refusals: 0,
});

describe("bars of a quota", () => {
  it("show spent and reserved as parts of the limit", () => {
    const [bar] = barsOf(quota({ name: "dollars", hard: 200, spent: 50, reserved: 10 }));
    expect(bar).toMatchObject({ name: "US dollars", spent: "$50.00", hard: "$200.00", reserved: "$10.00", spentShare: 0.25, warned: false, full: false });
    expect(bar?.reservedShare).toBeCloseTo(0.05);
  });

  it.each([[799, false], [800, true], [801, true]])("warn at the percentage that is spent: %i", (spent, warned) => {
    expect(barsOf(quota({ name: "tokens", hard: 1000, spent, reserved: 0 }))[0]?.warned).toBe(warned);
  });

  it.each([[999, 0, false], [1000, 0, true], [900, 100, true], [1200, 50, true]])("are full at the limit: %i + %i", (spent, reserved, full) => {
    const [bar] = barsOf(quota({ name: "tokens", hard: 1000, spent, reserved }));
    expect(bar?.full).toBe(full);
    expect((bar?.spentShare ?? 0) + (bar?.reservedShare ?? 0)).toBeLessThanOrEqual(1);
  });

  it("are full for a limit of nothing", () => {
    expect(barsOf(quota({ name: "investigations", hard: 0, spent: 0, reserved: 0 }))[0]).toMatchObject({ spentShare: 1, reservedShare: 0, full: true });
  });
});
