"""Supports the header Idempotency-Key: a repeated request creates no second object.

Decision: the server stores nothing for it. The name of the object is derived from the caller and the key, so the
Kubernetes API itself creates it once, whichever replica receives the request. An annotation contains the digest of the
request. The key is valid as long as the object exists.
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
"""Annotation of an object that was created with a key: digest of the caller and the key."""
BODY_ANNOTATION: Final = "tarsy.dev/submission"
"""Annotation of an object that was created with a key: digest of the request body."""
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Digests of a key with its caller, and of the request body."""

    key: str
    body: str

    @property
    def name(self) -> str:
        """The last part of the name of the created object."""
        return self.key[:20]

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the created object."""
        return {KEY_ANNOTATION: self.key, BODY_ANNOTATION: self.body}


def read_idempotency(request: web.Request, username: str, body: BaseModel) -> Idempotency | None:
    """Reads the header; returns None without it.

    Args:
        request: the request.
        username: name of the caller; equal keys of different callers are different keys.
        body: the validated body.

    Raises:
        BadRequest: the header is repeated, too long, or not printable ASCII.
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
