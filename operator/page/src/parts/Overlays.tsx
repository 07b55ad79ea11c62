/** Opens the palette of commands (Ctrl K, Cmd K) and the map of keys (?); both are loaded when they are first opened. */
import { lazy, Suspense, useEffect } from "react";
import type { Command } from "../logic/commands";
import { useKeys } from "./context";

const KeyMap = lazy(() => import("./KeyMap"));
const Palette = lazy(() => import("./Palette"));

export type Overlay = "palette" | "keys" | null;

type Props = { open: Overlay; commands: readonly Command[]; onOpen: (overlay: Overlay) => void };

export function Overlays({ open, commands, onOpen }: Props) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      onOpen(open === "palette" ? null : "palette");
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [open, onOpen]);
  useKeys((event) => {
    if (event.key === "?") onOpen(open === "keys" ? null : "keys");
  });
  if (open === null) return null;
  const close = () => onOpen(null);
  return <Suspense fallback={<span className="visually-hidden" aria-busy="true" />}>{open === "palette" ? <Palette commands={commands} onClose={close} /> : <KeyMap onClose={close} />}</Suspense>;
}
