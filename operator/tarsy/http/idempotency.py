"""The header Idempotency-Key: a request that is sent again, because its answer was lost, makes nothing anew.

Decision: nothing is kept for it. The name of what is made follows from the caller and the key, so the Kubernetes API
itself makes it once, whatever replica is asked; what was asked for is in an annotation, by its digest. The key holds as
long as the object is there.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from pydantic import BaseModel

from tarsy.http.errors import BadRequest

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
MAX_IDEMPOTENCY_KEY: Final = 255
KEY_ANNOTATION: Final = "tarsy.dev/idempotency-key"
"""On what was made with a key: a digest of the caller and the key."""
BODY_ANNOTATION: Final = "tarsy.dev/submission"
"""On what was made with a key: a digest of what was asked for."""
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A key, as the digest of who used it, and what it was used for."""

    key: str
    body: str

    @property
    def name(self) -> str:
        """The last part of the name of what is made."""
        return self.key[:20]

    @property
    def annotations(self) -> dict[str, str]:
        """On what is made."""
        return {KEY_ANNOTATION: self.key, BODY_ANNOTATION: self.body}


def read_idempotency(request: web.Request, username: str, body: BaseModel) -> Idempotency | None:
    """What the header says; None without it.

    Args:
        request: whose header.
        username: of the caller: keys of others are other keys.
        body: as it was read.

    Raises:
        BadRequest: it is no key.
    """
    found = request.headers.getall(IDEMPOTENCY_KEY, [])
    if not found:
        return None
    key = found[0].strip()
    if len(found) > 1 or len(key) > MAX_IDEMPOTENCY_KEY or not _KEY.fullmatch(key):
        raise BadRequest(
            f"{IDEMPOTENCY_KEY} must be set once, to 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters"
        )
    asked = body.model_dump_json(by_alias=True, exclude_unset=True)
    return Idempotency(_digest(f"{username}\n{key}"), _digest(asked))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
