"""Holds the dependencies of handlers, created once a process.

Decision: one frozen object instead of many arguments, so that a route needs no constructor; a test provides only what
its handler uses.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from tarsy.http.authentication.access import AccessReviews
from tarsy.http.errors import Unavailable
from tarsy.http.evidence.limits import EvidenceSlots
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.unstarted import UnstartedScans
from tarsy.kube.client import KubeClient
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.record.judging.shown_confidence import HIGH_FLOOR, HighVerdicts
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.judging.calibration import ChainKey, Verdicts
from tarsy.store.reading.reads import Reads

if TYPE_CHECKING:
    from tarsy.http.intake.texts import LargeTexts
    from tarsy.http.live.hub import Hub


@dataclass(frozen=True, slots=True)
class Services:
    """The dependencies of handlers.

    Args:
        pool: connections to Postgres.
        reads: reads the record.
        kube: authenticated as the operator; use it only after `access` has authorized the caller.
        callers: has no credential; `CheckedRequest.as_caller` adds the caller's token.
        access: authorizes callers.
        namespaces: looks up uids of namespaces.
        library_namespace: namespace of the library.
        stopping: set when the process shuts down; streams end then.
        live: streams investigations; None: streaming is off.
        origins: additional origins whose web pages may open WebSockets.
        sign_in_file: file with the one-time code of `tarsy dev`.
        texts: stores alert texts that are too large for an object; None: not supported.
        evidence: limits how often evidence is computed.
        history: recorded changes of objects; None: evidence is computed without.
        unstarted: finds alerts without a run, and investigations that were not accepted.
    """

    pool: asyncpg.Pool
    reads: Reads
    kube: KubeClient
    callers: KubeClient
    access: AccessReviews
    namespaces: NamespaceReader
    library_namespace: str = LIBRARY_NAMESPACE
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    live: "Hub | None" = None
    origins: tuple[str, ...] = ()
    sign_in_file: Path | None = None
    texts: "LargeTexts | None" = None
    evidence: EvidenceSlots = field(default_factory=EvidenceSlots)
    history: ObjectHistory | None = None
    unstarted: UnstartedScans = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unstarted", UnstartedScans(self.kube))

    async def high_verdicts(self, chains: Iterable[ChainKey]) -> dict[ChainKey, HighVerdicts]:
        """Returns the verdicts on findings with confidence High, of each Chain that has one.

        Args:
            chains: the Chains.

        Raises:
            StoreError: Postgres is unavailable.
        """
        return await Verdicts(self.pool).high(chains, self.calibration_floor)

    @property
    def calibration_floor(self) -> float:
        """Smallest lower end of the interval of right findings with confidence High."""
        return HIGH_FLOOR if self.reads.calibration_floor is None else self.reads.calibration_floor

    @property
    def large_texts(self) -> "LargeTexts":
        """The store of large alert texts.

        Raises:
            Unavailable: there is none.
        """
        if self.texts is None:
            raise Unavailable("a text this large cannot be stored now; send less, or reference a ConfigMap in dataFrom")
        return self.texts

    @property
    def hub(self) -> "Hub":
        """The hub of streams.

        Raises:
            Unavailable: streaming is off.
        """
        if self.live is None:
            raise Unavailable("streaming is unavailable now; try again")
        return self.live
