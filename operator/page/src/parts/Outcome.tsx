/** Shows what became of the alert of a finding. */
import type { Outcome as Word } from "../api/types";
import { OUTCOMES } from "../words";

export function Outcome({ outcome }: { outcome: Word }) {
  return <span className={`tag o-${outcome}`} title={OUTCOMES[outcome].what}>{OUTCOMES[outcome].name}</span>;
}
