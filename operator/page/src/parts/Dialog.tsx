/** Shows a modal dialog; Escape, and a click beside it, close it. */
import { useEffect, useRef, type ReactNode } from "react";

export function Dialog({ label, className = "", onClose, children }: { label: string; className?: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
  }, []);
  return (
    <dialog ref={dialog} className={`dialog ${className}`} aria-label={label} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      {children}
    </dialog>
  );
}
