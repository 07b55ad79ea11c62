/** Lists skills; the text of one is loaded when it is opened. */
import { useState } from "react";
import type { SkillItem, SkillText } from "../api/types";
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
        {open && <Text namespace={skill.namespace} name={skill.name} />}
      </details>
    </>
  );
}

function Text({ namespace, name }: { namespace: string; name: string }) {
  const loaded = useGet<SkillText>(`/namespaces/${namespace}/skills/${name}/text`, {});
  return (
    <>
      {loaded.error && <Problem error={loaded.error} />}
      {loaded.value?.problem && <p className="bad">{loaded.value.problem}</p>}
      {loaded.value?.text && <pre className="code">{loaded.value.text}</pre>}
    </>
  );
}
