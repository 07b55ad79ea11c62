/** Tells for a while that a lost connection is there again. */
import { useEffect, useRef, useState } from "react";
import type { Standing } from "../api/live";

const SECONDS = 4;

export function useRegained(standing: Standing): boolean {
  const lost = useRef(false);
  const [regained, setRegained] = useState(false);
  useEffect(() => {
    if (standing === "lost") {
      lost.current = true;
      setRegained(false);
    } else if (standing === "open" && lost.current) {
      lost.current = false;
      setRegained(true);
      const timer = setTimeout(() => setRegained(false), SECONDS * 1000);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [standing]);
  return regained;
}
