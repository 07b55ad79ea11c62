"""Reconciles the custom resources: events fill a cache and a queue; a reconcile depends on spec, record and cache.

Read first: `investigation`, then `machinery.active`. The modules at this level reconcile one kind each (`configuration`
four alike), level-triggered, one key at a time. `machinery` watches, caches, queues, relists and dispatches them, where
the Lease is held. `runs` accepts runs and projects their records onto status; `readiness` checks configuration;
`incidents`, `notifications` and `tool_workloads` do the work that has no kind of its own.
"""
