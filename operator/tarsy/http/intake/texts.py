"""Stores alert texts that are too large for an object: masked, in Postgres, by their digest.

Notifications and alerts submitted over the API are stored alike.
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
    """Location of a text: `spec` contains fields of the Alert, `body` the SHA-256 digest and text to store, if any."""

    spec: dict[str, Any]
    body: tuple[str, str] | None = None


def placed(text: str) -> Placed:
    """Places a masked text in the object if it fits, else in Postgres."""
    size = len(text.encode())
    if size <= MAX_DATA_BYTES:
        return Placed({"data": text})
    digest = hashlib.sha256(text.encode()).hexdigest()
    record = {"digest": digest, "sizeBytes": size, "preview": clip(text, PREVIEW)}
    return Placed({"dataFrom": {"record": record}}, (digest, text))


class LargeTexts:
    """Masks and stores large alert texts.

    Args:
        configuration: masks texts by the settings of a namespace.
        intake: stores masked texts.
    """

    def __init__(self, configuration: Configuration, intake: Intake) -> None:
        self._configuration = configuration
        self._intake = intake

    async def keep(self, namespace: str, text: str) -> dict[str, Any]:
        """Stores a text if it is large, and returns the fields of the Alert's spec.

        Args:
            namespace: namespace of the Alert.
            text: the unmasked text.

        Raises:
            Unavailable: the Kubernetes API is unavailable.
            StoreError: Postgres is unavailable.
        """
        place = placed(clean(await self._configuration.mask(text, namespace)))
        if place.body is not None:
            await self._intake.keep(namespace, *place.body)
        return place.spec
