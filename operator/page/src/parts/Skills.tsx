/** Shows skills and runbooks; the text of one is loaded when it is opened. */
import { useState } from "react";
import type { RunbookItem, RunbookText, SkillItem, SkillText } from "../api/types";
import { COLUMNS, EMPTY } from "../words";
import { useGet } from "./context";
import { Problem } from "./parts";

const DIGITS = 12;

export function SkillDetails({ skill }: { skill: SkillItem }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <p className="hint">{skill.description}</p>
      {skill.appliesTo && <p className="stages-line">{COLUMNS.appliesTo}: {skill.appliesTo}</p>}
      {skill.git && <p className="stages-line">{skill.git.url} {skill.git.commit.slice(0, DIGITS)} {skill.git.path}</p>}
      {skill.allowedTools && <p className="stages-line">{COLUMNS.allowedTools}: {skill.allowedTools.join(", ") || EMPTY.noTools}</p>}
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{COLUMNS.skillText}{skill.digest && <span className="hint"> sha256 {skill.digest.slice(0, DIGITS)}</span>}</summary>
        {open && <Text path={`/namespaces/${skill.namespace}/skills/${skill.name}/text`} />}
      </details>
    </>
  );
}

export function RunbookDetails({ runbook }: { runbook: RunbookItem }) {
  const [open, setOpen] = useState(false);
  const of = runbook.kind === "Chain" ? "chains" : "investigationdefaults";
  const where = runbook.git ? `${runbook.git.url} ${runbook.git.commit.slice(0, DIGITS)} ${runbook.git.path}` : (runbook.configMap ?? "");
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{COLUMNS.skillText} <span className="hint">{runbook.source} {where}</span></summary>
      {open && <Text path={`/namespaces/${runbook.namespace}/${of}/${runbook.name}/runbook`} />}
    </details>
  );
}

function Text({ path }: { path: string }) {
  const loaded = useGet<SkillText | RunbookText>(path, {});
  return (
    <>
      {loaded.error && <Problem error={loaded.error} />}
      {loaded.value?.problem && <p className="bad">{loaded.value.problem}</p>}
      {loaded.value?.text && <pre className="code">{loaded.value.text}</pre>}
    </>
  );
}
