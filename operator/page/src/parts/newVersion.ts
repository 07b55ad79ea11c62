/** Notices that the server was upgraded: it serves another build of the web UI than the one that is open. */
import { useEffect, useState } from "react";
import type { Standing } from "../api/live";
import { isOther, scriptsOf } from "../logic/version";

const SECONDS = 300;

/** Asks now and then, and when a connection is open, which may have been lost. */
export function useNewVersion(standing: Standing): boolean {
  const [other, setOther] = useState(false);
  useEffect(() => {
    if (other || standing === "lost") return;
    const abort = new AbortController();
    const open = [...document.scripts].flatMap((one) => scriptsOf(one.src));
    const ask = async () => {
      if (document.hidden) return;
      try {
        const answer = await fetch("/", { cache: "no-store", signal: abort.signal });
        if (answer.ok && isOther(open, await answer.text())) setOther(true);
      } catch {
        // the server is away, which the live connection tells
      }
    };
    if (standing === "open") void ask();
    const timer = setInterval(() => void ask(), SECONDS * 1000);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [other, standing]);
  return other;
}
