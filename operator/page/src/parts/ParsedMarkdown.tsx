/**
 * Parses and renders Markdown of models. Decision: raw HTML is never rendered (react-markdown leaves it as text), images are not
 * loaded, and links send no referrer: the text of a model may repeat what an attacker wrote into a log.
 */
import { memo } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";

const PLUGINS = [remarkGfm];

/** Renders one text. */
export default memo(function ParsedMarkdown({ text }: { text: string }) {
  return (
    <ReactMarkdown
      remarkPlugins={PLUGINS}
      components={{
        a: ({ href, children }) =>
          href && /^https?:/.test(href) ? (
            <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
              {children}
            </a>
          ) : (
            <span>{children}</span>
          ),
        img: ({ alt }) => <span>[image: {alt || "no description"}]</span>,
        input: ({ checked }) => <span aria-hidden="true">{checked ? "☑ " : "☐ "}</span>,
        h1: ({ children }) => <h4>{children}</h4>,
        h2: ({ children }) => <h4>{children}</h4>,
        h3: ({ children }) => <h4>{children}</h4>,
        table: ({ children }) => (
          <div className="scroll" tabIndex={0} role="region" aria-label="Table">
            <table>{children}</table>
          </div>
        ),
        pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
      }}
    >
      {text}
    </ReactMarkdown>
  );
});
