"""Defines the ports that lead to the stored evaluations and to the records that cases are made of."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from tarsy.evals.cassette import Cassette
from tarsy.store.evals import Evals

CassetteOf = Callable[[UUID], Awaitable[Cassette]]
"""Makes a cassette of the record of a finished investigation; raises CassetteError."""


@dataclass(frozen=True, slots=True)
class EvalPorts:
    """Leads to the stored evaluations and to the records."""

    evals: Evals
    cassette_of: CassetteOf
