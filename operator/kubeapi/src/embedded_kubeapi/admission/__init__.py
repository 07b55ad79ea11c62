"""Implements admission: a chain of `Admission` plug-ins, each of which may change or refuse an object.

The order is the real API's: all `mutate`s, then the object's own validation, then all `validate`s.
"""

from embedded_kubeapi.admission.chain import Admission, Chain, Review

__all__ = ["Admission", "Chain", "Review"]
