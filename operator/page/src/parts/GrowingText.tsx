/**
 * Shows a text that streams, as it is.
 *
 * Decision: new words are appended to the text node, so the browser shapes and breaks only them; React would replace the
 * whole text.
 */
import { memo, useLayoutEffect, useRef } from "react";

export const GrowingText = memo(function GrowingText({ text }: { text: string }) {
  const paragraph = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    const node = paragraph.current?.firstChild;
    if (!(node instanceof Text)) paragraph.current?.replaceChildren(document.createTextNode(text));
    else if (text.startsWith(node.data)) node.appendData(text.slice(node.length));
    else node.data = text;
  }, [text]);
  return <p className="plain" ref={paragraph} />;
});
