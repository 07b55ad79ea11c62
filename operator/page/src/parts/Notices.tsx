/** Tells about the connection to the server, the age of what is shown, and a new version. */
import { useEffect, useState } from "react";
import type { Standing } from "../api/live";
import { clock } from "../logic/format";
import { ACTIONS, PROBLEMS } from "../words";
import { useNewVersion } from "./newVersion";
import { useRegained } from "./regained";

export function Connection({ standing }: { standing: Standing }) {
  const regained = useRegained(standing);
  const since = useLostSince(standing);
  if (regained) return <span className="regained" role="status">{PROBLEMS.connected}</span>;
  if (standing !== "lost") return null;
  return (
    <span className="lost" role="status">
      {PROBLEMS.connectionLost}{" "}
      {since !== null && <span className="stale">{PROBLEMS.stale} {clock(since)}</span>}
    </span>
  );
}

/** Returns when the connection was lost: what is shown is of that time. */
function useLostSince(standing: Standing): string | null {
  const [since, setSince] = useState<string | null>(null);
  useEffect(() => {
    if (standing === "lost") setSince((before) => before ?? new Date(Date.now()).toISOString());
    else if (standing === "open") setSince(null);
  }, [standing]);
  return since;
}

export function NewVersion({ standing }: { standing: Standing }) {
  const other = useNewVersion(standing);
  const [later, setLater] = useState(false);
  if (!other || later) return null;
  return (
    <div className="new-version" role="status">
      {PROBLEMS.newVersion}{" "}
      <button type="button" className="primary" onClick={() => location.reload()}>{ACTIONS.reload}</button>
      <button type="button" className="quiet" onClick={() => setLater(true)}>{ACTIONS.later}</button>
    </div>
  );
}
