/** Shows a change as a diff; its lines are named by their kind. */
import { diffLines } from "../logic/approval";

export function DiffText({ text, label }: { text: string; label: string }) {
  return (
    <pre className="diff" tabIndex={0} aria-label={label}>
      {diffLines(text).map((line, place) => (
        <span key={place} className={`d-${line.kind}`}>{line.text}{"\n"}</span>
      ))}
    </pre>
  );
}
