/**
 * Shows Markdown of models. What parses it loads when the first text is shown; until then a text is shown as it is.
 *
 * Decision: of a text that streams, only complete parts are parsed, each once; its last block is shown as it is. A part has
 * several blocks where a list or a quote may go on in the next one: it is parsed again when another one of it is complete.
 */
import { lazy, memo, Suspense, useDeferredValue, useMemo } from "react";
import { blocksOf, partsOf } from "../logic/blocks";
import { GrowingText } from "./GrowingText";

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
  const parts = useMemo(() => partsOf(blocksOf(complete)), [complete]);
  return (
    <>
      {parts.map((part, place) => <Block key={place} text={part} />)}
      <GrowingText text={blocks.at(-1) ?? ""} />
    </>
  );
}

const Block = memo(function Block({ text }: { text: string }) {
  return <Suspense fallback={<p className="plain" aria-busy="true">{text}</p>}><Parsed text={text} /></Suspense>;
});
