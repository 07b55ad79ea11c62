/** Reads the changes around the onset of an investigation. */
import { useEffect, useState } from "react";
import type { Changes } from "../api/types";
import { get, Refused } from "../api/client";

/**
 * Returns the changes; null until they are known, and where the server refuses or does not know them.
 *
 * Decision: an error shows no strip. The changes are computed with the rights of the reader, who may have none, and the
 * finding does not depend on them.
 *
 * @param path of the resource; null: not yet.
 * @param found whether the run itself has found changes: they are read again when it has.
 */
export function useChanges(path: string | null, found: boolean): Changes | null {
  const [changes, setChanges] = useState<Changes | null>(null);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    get<Changes>(path, {}, abort.signal).then(setChanges, (error: unknown) => {
      if (!abort.signal.aborted && !(error instanceof Refused)) throw error;
    });
    return () => abort.abort();
  }, [path, found]);
  return changes;
}
