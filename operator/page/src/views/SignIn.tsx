/** Signs in with a token. It is stored in a cookie that scripts cannot read, and nowhere else. */
import { useState, type FormEvent } from "react";
import { signIn } from "../api/client";
import { Field, Problem } from "../parts/parts";
import { useTitle } from "../parts/context";
import { ACTIONS, VIEWS } from "../words";

export function SignIn({ why, onSignedIn }: { why: string; onSignedIn: () => void }) {
  useTitle(VIEWS.signIn);
  const [token, setToken] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim());
      setToken("");
      onSignedIn();
    } catch (refused) {
      setError(refused as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="alone">
      <h1>
        <span className="mark" aria-hidden="true">T</span> TARSy
      </h1>
      {why && <p role="status">{why}</p>}
      <form onSubmit={(event) => void send(event)}>
        <Field label="Kubernetes token" hint="You see what the RBAC rules of the cluster allow you to see.">
          <input type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} required autoFocus />
        </Field>
        {error && <Problem error={error} />}
        <button type="submit" className="primary" disabled={busy}>
          {ACTIONS.signIn}
        </button>
      </form>
      <p className="hint">
        To create a token of a ServiceAccount: <code>kubectl create token NAME -n NAMESPACE</code>
      </p>
    </main>
  );
}
