"""What handlers work with, made once a process.

Decision: one frozen bundle instead of one argument each, so that a route needs no constructor; a test hands in what its
handler uses.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from tarsy.http.authentication.access import AccessReviews
from tarsy.http.errors import Unavailable
from tarsy.http.namespaces import NamespaceReader
from tarsy.kube.client import KubeClient
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.store.reads import Reads

if TYPE_CHECKING:
    from tarsy.http.intake.texts import LargeTexts
    from tarsy.http.live.hub import Hub


@dataclass(frozen=True, slots=True)
class Services:
    """The record, the Kubernetes API and who may what.

    `kube` acts as the operator: what is read through it must have been allowed to the caller by `access` first.
    `callers` has no identity of its own; `Ask.as_caller` lends it that of the caller. `stopping` is set when the
    process ends: streams close then. `live` follows what happens. `origins` are web sites, besides the one of the
    request itself, whose pages may open WebSockets here. `sign_in_file` is where `tarsy dev` leaves its one-time code.
    `texts` keeps alerts that are too large for an object.
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

    @property
    def large_texts(self) -> "LargeTexts":
        """Keeps texts that are too large for an object.

        Raises:
            Unavailable: nothing does.
        """
        if self.texts is None:
            raise Unavailable("a text this large cannot be stored now; send less, or reference a ConfigMap in dataFrom")
        return self.texts

    @property
    def hub(self) -> "Hub":
        """What is followed here.

        Raises:
            Unavailable: nothing can be.
        """
        if self.live is None:
            raise Unavailable("streaming is unavailable now; try again")
        return self.live
