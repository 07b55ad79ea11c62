/**
 * Shows Markdown of models. What parses it loads when the first text is shown; until then a text is shown as it is.
 *
 * Decision: of a text that streams, only complete blocks are parsed, and that together, because a list or a quote may go on
 * in the next one. They are parsed when another one is complete; its last block is shown as it is, so most frames parse nothing.
 */
import { lazy, memo, Suspense, useDeferredValue, useMemo } from "react";
import { blocksOf } from "../logic/blocks";

const Parsed = lazy(() => import("./ParsedMarkdown"));

export const Markdown = memo(function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
  return (
    <div className="markdown">
      {streaming ? <Streamed text={text} /> : <Block text={text} />}
    </div>
  );
});

function Streamed({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  const complete = useDeferredValue(blocks.slice(0, -1).join("\n\n"));
  return (
    <>
      {complete && <Block text={complete} />}
      <p className="plain">{blocks.at(-1)}</p>
    </>
  );
}

const Block = memo(function Block({ text }: { text: string }) {
  return <Suspense fallback={<p className="plain" aria-busy="true">{text}</p>}><Parsed text={text} /></Suspense>;
});
