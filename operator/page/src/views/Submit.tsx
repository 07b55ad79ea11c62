/** Submits an alert, as `kubectl apply` would, and opens its investigation. */
import { useEffect, useState, type FormEvent } from "react";
import { get, post, Refused } from "../api/client";
import type { Alert, AlertTypes, Chains, McpServers, Providers, SubmittedAlert } from "../api/types";
import { investigationLink } from "../logic/route";
import { anyNative, brought, offered, takesTools, type Chosen, type Wishes } from "../logic/tools";
import { go, useGet, useTitle, useWorld } from "../parts/context";
import { Field, Problem, ReadOnly } from "../parts/parts";
import { NativeTools, ToolServers } from "../parts/Tools";
import { typeHint } from "../logic/alertType";
import { ACTIONS, OPTIONS, VIEWS } from "../words";

const SEVERITIES = ["Critical", "Warning", "Info"];
const PATIENCE = 120;

export default function Submit() {
  useTitle(VIEWS.submit);
  const world = useWorld();
  const [namespace, setNamespace] = useState(world.namespace || (world.namespaces.items[0] ?? ""));
  const [alertType, setAlertType] = useState("");
  const [data, setData] = useState("");
  const [runbook, setRunbook] = useState("");
  const [severity, setSeverity] = useState("");
  const [chosen, setChosen] = useState<Chosen>(new Map());
  const [wishes, setWishes] = useState<Wishes>({});
  const [error, setError] = useState<Refused | null>(null);
  const [made, setMade] = useState<SubmittedAlert | null>(null);
  const types = useGet<AlertTypes>(namespace ? "/alert-types" : null, { namespace });
  const listed = { namespace, withLibrary: true, limit: 200 };
  const tools = useGet<McpServers>(namespace ? "/mcpservers" : null, listed);
  const chains = useGet<Chains>(namespace ? "/chains" : null, listed);
  const usual = types.value?.defaultAlertType ?? "";
  const type = alertType.trim() || usual;
  const chain = types.value?.items.find((one) => one.alertType === type)?.chains[0];
  // The models of a chain are in its own namespace, or in this one, whose defaults select them.
  const own = useGet<Providers>(namespace ? "/llmproviders" : null, { namespace, limit: 200 });
  const ofChain = useGet<Providers>(chain && chain.namespace !== namespace ? "/llmproviders" : null, { namespace: chain?.namespace, limit: 200 });
  const taken = takesTools(chains.value?.items ?? [], chain);
  const servers = offered(tools.value?.items ?? [], namespace);
  const native = anyNative([...(own.value?.items ?? []), ...(ofChain.value?.items ?? [])]);

  const send = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    const alert = {
      ...(alertType.trim() ? { alertType: alertType.trim() } : {}),
      data,
      ...(runbook.trim() ? { runbook: /^https?:\/\/\S+$/.test(runbook.trim()) ? { url: runbook.trim() } : { inline: runbook } } : {}),
      ...(severity ? { severity } : {}),
      ...(taken ? brought(chosen, native ? wishes : {}) : {}),
    };
    try {
      setMade(await post<SubmittedAlert>(`/namespaces/${namespace}/alerts`, alert));
    } catch (refused) {
      setError(refused as Refused);
    }
  };
  if (made) return <Waiting made={made} onAnother={() => setMade(null)} />;
  if (!world.session.hasToken) {
    return (
      <div className="view">
        <h1>{VIEWS.submit}</h1>
        <ReadOnly />
      </div>
    );
  }
  const choose = (name: string) => {
    setNamespace(name);
    setChosen(new Map()); // servers of the same name differ between namespaces
  };
  return (
    <div className="view">
      <h1>{VIEWS.submit}</h1>
      <form className="form card" onSubmit={(event) => void send(event)}>
        <Field label="Namespace">
          <select value={namespace} onChange={(event) => choose(event.target.value)} required>
            {world.namespaces.items.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        <Field label="Alert type" hint={types.value ? typeHint(types.value, type, chain !== undefined) : ""}>
          <input list="alert-types" value={alertType} onChange={(event) => setAlertType(event.target.value)} required={!usual} placeholder={usual} maxLength={253} />
        </Field>
        <datalist id="alert-types">
          {types.value?.items.map((one) => <option key={one.alertType} value={one.alertType} />)}
        </datalist>
        <Field label="Alert" hint="Text in any format. Secrets are masked before agents receive it.">
          <textarea rows={10} value={data} onChange={(event) => setData(event.target.value)} required className="code" />
        </Field>
        <Field label="Runbook" hint="Text or URL. The default runbook of the namespace if empty.">
          <textarea rows={3} value={runbook} onChange={(event) => setRunbook(event.target.value)} />
        </Field>
        <Field label="Severity">
          <select value={severity} onChange={(event) => setSeverity(event.target.value)}>
            <option value="">{OPTIONS.noSeverity}</option>
            {SEVERITIES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </Field>
        {taken && servers.length > 0 && <ToolServers servers={servers} chosen={chosen} onChange={setChosen} />}
        {taken && native && <NativeTools wishes={wishes} onChange={setWishes} />}
        {!taken && <p className="hint">The chain does not accept tools from alerts; it uses its own.</p>}
        {error && <Problem error={error} />}
        <button type="submit" className="primary">{ACTIONS.submit}</button>
      </form>
    </div>
  );
}

function Waiting({ made, onAnother }: { made: SubmittedAlert; onAnother: () => void }) {
  const [alert, setAlert] = useState<Alert | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let left = PATIENCE;
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      try {
        const found = await get<Alert>(`/namespaces/${made.namespace}/alerts/${made.name}`);
        setAlert(found);
        if (found.investigation) {
          go(investigationLink(made.namespace, found.investigation));
          return;
        }
        if (found.phase === "Rejected") return;
      } catch (refused) {
        setError(refused as Error);
      }
      if (--left > 0) timer = setTimeout(() => void look(), 1000);
    };
    void look();
    return () => clearTimeout(timer);
  }, [made]);
  const refused = alert?.conditions.find((one) => one.status === "False");
  return (
    <div className="view">
      <h1>{made.alertType}</h1>
      <p role="status">
        Alert {made.namespace}/{made.name}{alert?.phase ? `: ${alert.phase}` : ""}.
        {alert?.phase !== "Rejected" && " Its investigation opens as soon as it exists."}
      </p>
      {refused && <div className="problem" role="alert">{refused.reason}: {refused.message}</div>}
      {error && <Problem error={error} />}
      <button type="button" onClick={onAnother}>{ACTIONS.submitAnother}</button>
    </div>
  );
}
