/** Lays out an alert: its labels, annotations and links, and the text that the agents got. */
import { memo } from "react";
import { alertParts } from "../logic/alert";
import { moment } from "../logic/format";
import { ACTIONS, COLUMNS, SECTIONS } from "../words";
import { Markdown } from "./Markdown";
import { Copy, Section } from "./parts";

export const AlertCard = memo(function AlertCard({ text, runbook }: { text: string; runbook: string | null }) {
  const parts = alertParts(text);
  const raw = <pre className="alert-text" tabIndex={0} aria-label={SECTIONS.alertText}>{text}</pre>;
  return (
    <Section title={SECTIONS.alert} side={<Copy label={ACTIONS.copy} text={() => text} />}>
      {parts ? (
        <>
          <dl className="alert-parts">
            {parts.startsAt && <Pair name={COLUMNS.startsAt} value={moment(parts.startsAt)} />}
            {parts.labels.map(([name, value]) => <Pair key={name} name={name} value={value} />)}
            {parts.annotations.map(([name, value]) => <Pair key={name} name={name} value={value} />)}
          </dl>
          {parts.links.length > 0 && (
            <p className="alert-links">
              {parts.links.map(([name, url]) => (
                <a key={name} href={url} target="_blank" rel="noopener noreferrer nofollow" title={url}>{name}</a>
              ))}
            </p>
          )}
          <details>
            <summary>{SECTIONS.alertText}</summary>
            {raw}
          </details>
        </>
      ) : raw}
      {runbook && (
        <details>
          <summary>{SECTIONS.runbook}</summary>
          <Markdown text={runbook} />
        </details>
      )}
    </Section>
  );
});

function Pair({ name, value }: { name: string; value: string }) {
  return <div><dt>{name}</dt><dd>{value}</dd></div>;
}
