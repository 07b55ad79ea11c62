/** Shares an investigation: a link, Markdown, JSON, or on paper. */
import { useState } from "react";
import { pathOf } from "../api/client";
import { ACTIONS } from "../words";
import { Copy } from "./parts";

export function ShareMenu({ namespace, name, markdown }: { namespace: string; name: string; markdown: () => string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="quiet share" aria-expanded={open} onClick={() => setOpen(!open)}>{ACTIONS.share}</button>
      {open && (
        <div className="card popover actions" role="group" aria-label={ACTIONS.share}>
          <Copy label={ACTIONS.copyLink} text={() => location.href} />
          <Copy label={ACTIONS.copyMarkdown} text={markdown} />
          <a className="button quiet" href={`/api/v1${pathOf(namespace, name)}`} target="_blank" rel="noopener">{ACTIONS.json}</a>
          <button type="button" className="quiet" onClick={() => print()}>{ACTIONS.print}</button>
        </div>
      )}
    </>
  );
}
