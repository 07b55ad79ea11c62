"""Serves the HTTP API of the record, the web UI, the intake of alerts and the admission webhook.

Read `route` first (a route is data: path, permission, models, handler), then `application`, which leads a request to
its handler through authentication, authorization and validation. Modules and folders, inner ones first:

- `models`, `errors`: base classes of request and response models, and the errors that handlers raise;
- `review_cache`, `namespaces`, `bodies`, `reading`, `idempotency`: cached answers of the Kubernetes API, and
  the bounded reading of requests;
- `authentication`: bearer tokens, the front proxy of the Kubernetes API, the session of the web UI, access reviews;
- `views`: response models; `routes`: one module a subject, with parameters, handlers and entries of the route table;
- `live`: streams of investigations by WebSocket and server-sent events; read `hub` and `investigation_stream`;
- `intake`: notifications that become Alerts; it is no part of the route table;
- `admission`: the webhook that stamps authors, and the certificates that the API server trusts;
- `table`, `openapi`: all routes, and the document that describes them;
- `server`: opens the ports. The direct port serves everything to bearer tokens and browsers; the aggregated port
  (`aggregated`) serves some routes to kube-apiserver as `record.tarsy.dev`.

Writes to Kubernetes use the caller's own token, so RBAC, admission and the audit log see the person; only the intake
creates Alerts as the operator, in the name of their sender. The server reads the record and decides nothing about runs.
"""
