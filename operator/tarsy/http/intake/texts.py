"""Texts of alerts that are too large for an object: masked, kept beside the record, named by their digest.

What comes by a notification and what comes by the API is kept alike.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from tarsy.http.intake.configuration import Configuration
from tarsy.record.text import clean
from tarsy.resources.schema import clip
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES
from tarsy.store.intake import Intake

PREVIEW = 1000


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a text is: `spec` has its fields of an Alert, `body` is what is to be kept (SHA-256 and text), if any."""

    spec: dict[str, Any]
    body: tuple[str, str] | None = None


def placed(text: str) -> Placed:
    """A masked text, in the object where it fits."""
    size = len(text.encode())
    if size <= MAX_DATA_BYTES:
        return Placed({"data": text})
    digest = hashlib.sha256(text.encode()).hexdigest()
    record = {"digest": digest, "sizeBytes": size, "preview": clip(text, PREVIEW)}
    return Placed({"dataFrom": {"record": record}}, (digest, text))


class LargeTexts:
    """Keeps them.

    Args:
        configuration: knows how the alerts of a namespace are masked.
        intake: keeps what is masked.
    """

    def __init__(self, configuration: Configuration, intake: Intake) -> None:
        self._configuration = configuration
        self._intake = intake

    async def keep(self, namespace: str, text: str) -> dict[str, Any]:
        """The fields of an Alert's spec for a text of its namespace, which is kept then.

        Raises:
            Unavailable: the Kubernetes API is away.
            StoreError: Postgres is away.
        """
        place = placed(clean(await self._configuration.mask(text, namespace)))
        if place.body is not None:
            await self._intake.keep(namespace, *place.body)
        return place.spec
