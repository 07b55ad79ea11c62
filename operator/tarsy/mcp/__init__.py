"""Connects agents to MCP servers: transports, sessions, tool policies, calls and recovery.

Read `toolbox` first: it serves the tool calls of one agent. Inner modules first:

- `errors`, `connection_errors`: errors, and their sentences for conditions and models;
- `stdio_transport`, `sse_transport`, `sdk_http`, `http_failures`, `service_account_auth`: transports and credentials;
- `http_calls`: tool calls over streamable HTTP without the SDK;
- `connection`: prepares the connection to one server; `session`: one session over it; `server`: the sessions of one
  server, opened again when they end;
- `tool_catalog`, `namespace_binding`, `agent_tools`: the tools that policy and namespaces leave to an agent;
- `arguments`, `schema`, `result_text`: arguments and results of calls;
- `health`: one check of a server; `gateway`, `gateway_session`: serve a stdio server over HTTP.

The package of the SDK is also called `mcp`; absolute imports keep the two apart.
"""
