"""Defines the default namespace of the library.

Decision: a module of its own that imports nothing, because the command line names it before it loads anything.
"""

from typing import Final

LIBRARY_NAMESPACE: Final = "tarsy-library"
"""The namespace of `manifests/library`; operator and workers must agree on theirs."""
