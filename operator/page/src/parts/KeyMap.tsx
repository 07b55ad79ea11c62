/** Lists the keys of the web UI. */
import { ACTIONS, KEYS } from "../words";
import { Dialog } from "./Dialog";

export default function KeyMap({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={KEYS.title} onClose={onClose}>
      <h2>{KEYS.title}</h2>
      <dl className="key-map">
        {KEYS.all.map(([keys, what]) => (
          <div key={what}>
            <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog"><button type="submit">{ACTIONS.close}</button></form>
    </Dialog>
  );
}
