"""Finds well-known faults of Kubernetes objects: pure functions from the objects to signals.

Each rule looks at the present: a past Event or an old container end is no signal while its object is well. A rule is
`Certain` only where the control plane itself says what is wrong or the objects contradict each other; everything that
needs a guess is `Likely`. Add a rule in the module of its subject and to that module's `RULES`.
"""
