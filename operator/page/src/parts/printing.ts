/** Tells components that the view is being printed: then everything is shown whole. */
import { createContext, useContext, useEffect, useState } from "react";
import { flushSync } from "react-dom";

export const Printing = createContext(false);

/** Returns whether texts are shown whole because the view is being printed. */
export function usePrinted(): boolean {
  return useContext(Printing);
}

/** Returns whether a folded text is shown whole, which it always is in print, and what turns that. */
export function useWhole(open = false): [boolean, (whole: boolean) => void] {
  const [opened, setWhole] = useState(open);
  return [usePrinted() || opened, setWhole];
}

/** Returns whether the browser prints; what is to be printed is drawn before it is. */
export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const media = matchMedia("print");
    let opened: HTMLDetailsElement[] = [];
    const turn = (on: boolean) => {
      flushSync(() => setPrinting(on));
      for (const one of opened) one.open = false;
      opened = on ? [...document.querySelectorAll("details")].filter((one) => !one.open) : [];
      for (const one of opened) one.open = true;
    };
    const changed = () => turn(media.matches);
    const [begins, ends] = [() => turn(true), () => turn(media.matches)];
    media.addEventListener("change", changed);
    addEventListener("beforeprint", begins);
    addEventListener("afterprint", ends);
    return () => {
      media.removeEventListener("change", changed);
      removeEventListener("beforeprint", begins);
      removeEventListener("afterprint", ends);
    };
  }, []);
  return printing;
}
