/** Draws parts of a limit as a bar; the text stands beside it for people, and is its value for screen readers. */
type Part = { share: number; held?: boolean };

export function Meter({ name, text, parts, className = "" }: { name: string; text: string; parts: readonly Part[]; className?: string }) {
  const share = parts.reduce((sum, part) => sum + part.share, 0);
  return (
    <span className={`meter ${className}`.trim()} role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(share * 100)} aria-valuetext={text}>
      {parts.map((part, place) => <span key={place} className={part.held ? "held" : undefined} style={{ width: `${part.share * 100}%` }} />)}
    </span>
  );
}
