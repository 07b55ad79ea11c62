/** Computes the bars of a quota. */
import type { QuotaItem } from "../api/types";
import { QUOTAS } from "../words";
import { count, dollars } from "./format";

export type QuotaBar = {
  name: string;
  /** What is spent, and the limit, in words. */
  spent: string;
  hard: string;
  /** What running calls reserve, in words; null: nothing. */
  reserved: string | null;
  /** Parts of the limit, from 0 to 1; together at most 1. */
  spentShare: number;
  reservedShare: number;
  /** Whether the percentage for a warning is spent. */
  warned: boolean;
  /** Whether what is spent and reserved reaches the limit. */
  full: boolean;
};

/** Returns a bar for each limit of a quota. */
export function barsOf(quota: QuotaItem): QuotaBar[] {
  return quota.limits.map(({ name, hard, spent, reserved }) => {
    const written = name === "dollars" ? dollars : count;
    const spentShare = hard > 0 ? Math.min(1, spent / hard) : 1;
    return {
      name: QUOTAS.limits[name as keyof typeof QUOTAS.limits] ?? name,
      spent: written(spent),
      hard: written(hard),
      reserved: reserved > 0 ? written(reserved) : null,
      spentShare,
      reservedShare: hard > 0 ? Math.min(1 - spentShare, reserved / hard) : 0,
      warned: spentShare * 100 >= quota.warnAt,
      full: hard <= 0 || spent + reserved >= hard,
    };
  });
}
