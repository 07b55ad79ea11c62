/** Shows what was asked for and has no run: why, and what to do about it. */
import type { UnstartedItem, UnstartedPage } from "../api/types";
import { author } from "../logic/format";
import { UNSTARTED_LIMIT, unstartedQuestion } from "../logic/questions";
import { investigationLink } from "../logic/route";
import { stateOfRequest } from "../logic/unstarted";
import { COLUMNS, EMPTY, SECTIONS } from "../words";
import { useGet, useNow } from "./context";
import { Verdict } from "./parts";
import { Severity } from "./RunTable";
import { Ago } from "./Time";

const SECONDS = 10;

/** Lists alerts without a run and investigations that were not accepted; nothing where there are none. */
export function UnstartedList({ namespaces }: { namespaces: readonly string[] }) {
  const page = useGet<UnstartedPage>("/unstarted", unstartedQuestion(namespaces), SECONDS).value;
  const now = useNow(Boolean(page?.items.length));
  if (!page || page.items.length === 0) return null;
  return (
    <section className="unstarted" aria-label={SECTIONS.unstarted}>
      <h2>{SECTIONS.unstarted} <span className="hint">{page.continue ? `${UNSTARTED_LIMIT}+` : page.items.length}</span></h2>
      <table className="list">
        <thead>
          <tr>
            <th scope="col">{COLUMNS.phase}</th>
            <th scope="col">{COLUMNS.alert}</th>
            <th scope="col">{COLUMNS.reason}</th>
            <th scope="col" className="number">{COLUMNS.age}</th>
          </tr>
        </thead>
        <tbody>
          {page.items.map((item) => (
            <tr key={item.uid}>
              <td data-label={COLUMNS.phase}><Phase item={item} /></td>
              <td data-label={COLUMNS.alert} className="what">
                {item.severity && <><Severity severity={item.severity} />{" "}</>}
                {item.kind === "Investigation" ? <a className="row-link" href={investigationLink(item.namespace, item.name)}>{item.alertType ?? item.name}</a> : <strong>{item.alertType ?? item.name}</strong>}
                <span className="where">{item.kind} {item.namespace}/{item.name}</span>
                {item.author && <span className="where">{author(item.author)}</span>}
              </td>
              <td data-label={COLUMNS.reason} className="finding-cell"><Why item={item} /></td>
              <td data-label={COLUMNS.age} className="number"><Ago at={item.createdAt} now={now} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {page.continue && <p className="hint">{EMPTY.moreUnstarted}</p>}
    </section>
  );
}

/** Shows what the object of an investigation without a record says. */
export function RequestTold({ item }: { item: UnstartedItem }) {
  return (
    <div className="card">
      <div className="title-row">
        <h2>{item.alertType ?? item.name}</h2>
        <span data-answer="now"><Phase item={item} /></span>
      </div>
      <div data-answer="cause"><Why item={item} /></div>
    </div>
  );
}

function Phase({ item }: { item: UnstartedItem }) {
  return <Verdict verdict={item.phase} state={stateOfRequest(item.phase)} />;
}

function Why({ item }: { item: UnstartedItem }) {
  if (!item.message) return <span className="hint">{EMPTY.notLookedAt}</span>;
  return <p className="why"><strong>{item.reason}</strong> {item.message}</p>;
}
