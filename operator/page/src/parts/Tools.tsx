/** Selects the tool servers, tools and native tools of an alert. */
import type { McpServer } from "../api/types";
import { ACTIONS, OPTIONS } from "../words";
import { has, NATIVE, withServer, withTool, type Chosen, type Wishes } from "../logic/tools";

type ServersProps = { servers: readonly McpServer[]; chosen: Chosen; onChange: (chosen: Chosen) => void };

export function ToolServers({ servers, chosen, onChange }: ServersProps) {
  return (
    <fieldset>
      <legend>MCP servers, instead of those of the chain</legend>
      {servers.map((server) => (
        <div key={server.uid} className="server">
          <label className="check">
            <input type="checkbox" checked={chosen.has(server.name)} onChange={() => onChange(withServer(chosen, server.name))} />
            {server.name} <span className="hint">{said(server, chosen)}</span>
          </label>
          {server.tools.length > 0 && (
            <details>
              <summary>{ACTIONS.selectTools}</summary>
              <div className="tools" role="group" aria-label={`Tools of ${server.name}`}>
                {server.tools.map((tool) => (
                  <label key={tool} className="check">
                    <input type="checkbox" checked={has(chosen, server.name, tool)} onChange={() => onChange(withTool(chosen, server, tool))} />
                    {tool}
                  </label>
                ))}
              </div>
            </details>
          )}
        </div>
      ))}
    </fieldset>
  );
}

function said(server: McpServer, chosen: Chosen): string {
  const some = chosen.get(server.name);
  const tools = some ? `${some.size} of ${server.toolCount ?? server.tools.length} tools` : `${server.toolCount ?? "?"} tools`;
  return server.available === false ? `${tools}, unavailable` : tools;
}

export function NativeTools({ wishes, onChange }: { wishes: Wishes; onChange: (wishes: Wishes) => void }) {
  return (
    <fieldset>
      <legend>Native tools of the LLM provider</legend>
      {NATIVE.map(({ field, name }) => (
        <label key={field} className="check">
          <select
            value={wishes[field] === undefined ? "" : String(wishes[field])}
            onChange={(event) => onChange({ ...wishes, [field]: event.target.value ? event.target.value === "true" : undefined })}
          >
            <option value="">{OPTIONS.asConfigured}</option>
            <option value="true">{OPTIONS.on}</option>
            <option value="false">{OPTIONS.off}</option>
          </select>
          {name}
        </label>
      ))}
    </fieldset>
  );
}
