"""Implements a small Kubernetes API in memory, for development and for fast tests of operators.

It is not Kubernetes: one process without etcd and kubelet, and only those controllers without which clients would wait
forever (owner garbage collection, namespace deletion, the `default` ServiceAccount, CRD names). It imports nothing of
TARSy. `EmbeddedApi` in `server.py` is the entry point; the command `embedded-kubeapi` runs it alone.

The modules, inner first; each imports only those before it:

    errors      ApiError and FieldError, which become a `Status` body
    objects     Obj (a plain dict), names, times, copies. A stored object is never changed: copy, then put
    resource    Resource: one served kind (group, version, plural, columns, schema), stored under its `key`
    jsonpath, selectors, table       reading objects: columns, label and field selectors
    store       Store: objects by key, one revision counter, the log of events that watches read; journal: on disk
    patterns    regular expressions on RE2
    cel         parser, evaluator, library of the Common Expression Language
    schema      structural schemas: unknown fields, pruning, defaults, values, CEL rules; models: built-in kinds' fields
    shape       Shape: how a field merges (list types), from a schema or from the models of the built-in kinds
    patch       JSON merge, JSON, strategic merge; managed fields; apply
    call        Caller, Attributes, Call: identity, request and options
    registry    Registry: the served kinds; builtin/ fills it, crds adds and removes
    admission   the protocol Admission and its chain: policies, webhooks
    auth        Authorizer (RBAC, escalation), authentication (certificates, tokens), the reviews
    writes      Writes: create, update, patch, apply, delete, the same for each kind; lifecycle: garbage collection
    http        requests: paths, bodies, discovery, OpenAPI, lists, watches, proxy to aggregated APIs
    server      EmbeddedApi: a thread with a loop, TLS, kubeconfigs

Seams: a kind's own rules are `Strategy` functions in `builtin/strategies.py`; a plug-in that checks writes is
an `Admission`; one that authorizes requests is an `Authorizer`; a `Shape` hides the source of merge keys.

Everything runs on one event loop. Reads and commits are plain functions, so each is atomic; only admission waits, and
a commit checks that the object is still the one it was prepared from.
"""
