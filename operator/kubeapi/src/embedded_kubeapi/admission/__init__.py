"""Judges of writes: a chain of `Admission`s, each of which may change an object or refuse it.

The order is the real API's: all `mutate`s, then the object's own validation, then all `validate`s.
"""

from embedded_kubeapi.admission.chain import Admission, Chain, Review

__all__ = ["Admission", "Chain", "Review"]
