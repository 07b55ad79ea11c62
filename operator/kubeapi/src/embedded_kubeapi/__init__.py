"""A small Kubernetes API in memory, for trying out and for fast tests: nothing to download, there in a moment.

It is not Kubernetes: one process, no etcd, no kubelet, and only the controllers without which clients wait for ever
(owner garbage collection, namespace content, the `default` ServiceAccount, CRD names). It imports nothing of the rest
of this project. `EmbeddedApi` in `server.py` is the way in; `python -m embedded_kubeapi` runs it alone.

The rooms, inner first; each imports only those before it:

    errors      ApiError and FieldError: what becomes a `Status` body
    objects     Obj (a plain dict), names, times, copies. A stored object is never changed: copy, then put
    resource    Resource: one served kind (group, version, plural, columns, schema), `key` says where it is stored
    jsonpath, selectors, table       reading objects: columns, label and field selectors
    store       Store: objects by key, one revision counter, the log of events that watches read; journal: on disk
    patterns    regular expressions on RE2
    cel         parser, evaluator, library of the Common Expression Language
    schema      structural schemas: unknown fields, pruning, defaults, values, CEL rules; models: built-in kinds' fields
    shape       Shape: how a field merges (list types), from a schema or from the models of the built-in kinds
    patch       JSON merge, JSON, strategic merge; managed fields; apply
    call        Caller, Attributes, Call: who asks what with which options
    registry    Registry: what is served now; builtin/ fills it, crds adds and removes
    admission   the protocol Admission and its chain: policies, webhooks
    auth        Authorizer (RBAC, escalation), authentication (certificates, tokens), the reviews
    writes      Writes: create, update, patch, apply, delete, the same for each kind; lifecycle: what follows a deletion
    http        requests: paths, bodies, discovery, OpenAPI, lists, watches, proxy to aggregated APIs
    server      EmbeddedApi: a thread with a loop, TLS, kubeconfigs

Seams: a kind's own rules are `Strategy` functions in `builtin/strategies.py`; anything that judges writes is an
`Admission`; anything that answers "may they?" an `Authorizer`; a `Shape` hides where merge keys come from.

Everything runs on one event loop. Reads and commits are plain functions, so each is atomic; only admission waits, and
a commit checks that the object is still the one it was prepared from.
"""
