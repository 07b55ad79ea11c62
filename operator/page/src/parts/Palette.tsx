/** Finds views, actions and investigations by their names, and opens the selected one. */
import { useEffect, useId, useMemo, useState } from "react";
import type { ItemList } from "../api/types";
import { found, moved, type Command } from "../logic/commands";
import { phase } from "../logic/format";
import { investigationLink } from "../logic/route";
import { go, scope, useGet, useWorld } from "./context";
import { Dialog } from "./Dialog";
import { PALETTE } from "../words";

const RUNS = 8;
const WAIT = 250;
/** Least characters of a search. */
const LEAST = 3;

export default function Palette({ commands, onClose }: { commands: readonly Command[]; onClose: () => void }) {
  const world = useWorld();
  const [text, setText] = useState("");
  const [search, setSearch] = useState("");
  const [place, setPlace] = useState(0);
  const id = useId();
  useEffect(() => {
    const timer = setTimeout(() => setSearch(text.trim().length >= LEAST ? text.trim() : ""), WAIT);
    return () => clearTimeout(timer);
  }, [text]);
  const runs = useGet<ItemList>("/investigations", { namespace: scope(world), search, limit: RUNS });
  const all = useMemo(() => {
    const items = (runs.value?.items ?? []).map((item): Command => ({
      id: item.uid, group: PALETTE.runs, name: item.alertType, hint: `${item.namespace}/${item.name}, ${phase(item.state, item.desiredState)}`, act: investigationLink(item.namespace, item.name),
    }));
    // The server has searched for the text, in the summaries too.
    return [...found(commands, text), ...(search === text.trim() ? items : found(items, text))];
  }, [commands, runs.value, text, search]);
  const at = Math.min(place, Math.max(0, all.length - 1));
  useEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at, id]);
  const open = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    if (typeof command.act === "string") go(command.act);
    else command.act();
  };
  const press = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setPlace(moved(at, step, all.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(all[at]);
    }
  };
  return (
    <Dialog label={PALETTE.title} className="palette" onClose={onClose}>
      <input
        type="text" role="combobox" aria-label={PALETTE.title} placeholder={PALETTE.placeholder} aria-expanded="true" aria-controls={id} aria-autocomplete="list"
        aria-activedescendant={all.length > 0 ? `${id}-${at}` : undefined} autoFocus autoComplete="off" spellCheck={false} maxLength={200}
        value={text} onChange={(event) => (setText(event.target.value), setPlace(0))} onKeyDown={press}
      />
      <ul id={id} role="listbox" aria-label={PALETTE.title}>
        {all.map((command, n) => (
          <li key={command.id} id={`${id}-${n}`} data-command={command.id} role="option" aria-selected={n === at} onMouseMove={() => setPlace(n)} onClick={() => open(command)}>
            <span className="hint">{command.group}</span> <span className="command">{command.name}</span> {command.hint && <span className="hint where">{command.hint}</span>}
          </li>
        ))}
      </ul>
      {all.length === 0 && <p className="hint" role="status">{PALETTE.nothing}</p>}
    </Dialog>
  );
}
