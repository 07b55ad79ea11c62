"""The levels a setting can stand at, and which of them counts.

Decision: a setting travels with the field it stands in, so the highest one that is set decides the value, the field
that an error names, and the namespace its name is looked up in: a configuration object's references resolve in its
own namespace. Lists of levels read from lowest to highest, as reference section 1.5 has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1.chain import ChainSpec
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaultsSpec

_T = TypeVar("_T")
Level = tuple[_T | None, FieldPath]


@dataclass(frozen=True, slots=True)
class Scope:
    """What all agents of a run share: the chain and the defaults, with the fields they stand in.

    `path` is where the run's own references are looked up, in order; it begins with the run's namespace. `shared` are
    the defaults of the chain's namespace, which name providers where those of the run may not (`Providers`).
    """

    path: tuple[str, ...]
    chain: ChainSpec
    at_chain: FieldPath
    defaults: InvestigationDefaultsSpec
    at_defaults: FieldPath
    shared: InvestigationDefaultsSpec = field(default_factory=InvestigationDefaultsSpec)

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        return self.path[0]

    @property
    def home(self) -> str:
        """The chain's namespace, where it looks up what it names."""
        return self.at_chain.namespace


def last_set(*levels: Level[_T]) -> tuple[_T, FieldPath] | None:
    """The highest level that is set, with its field; an empty list is set."""
    return next(((value, at) for value, at in reversed(levels) if value is not None), None)


def last_filled(*levels: Level[tuple[_T, ...]]) -> tuple[tuple[_T, ...], FieldPath] | None:
    """The highest level that has something in its list: an empty list is as good as none."""
    return last_set(*((value or None, at) for value, at in levels))
