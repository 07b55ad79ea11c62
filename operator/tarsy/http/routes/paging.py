"""The `continue` of lists: where a page ended, for whoever asks the same question again.

Decision: it holds a place, never an offset, so that what is added meanwhile shifts nothing; and a digest of the
question, so that a token of another question is refused instead of giving a page of neither.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import orjson

from tarsy.http.errors import BadRequest

_REFUSAL = "query parameter continue: is not of this list as it is asked for; leave it out to begin anew"


def encode(question: str, place: Sequence[str]) -> str:
    """A token.

    Args:
        question: what is asked, without limit and token.
        place: where the page ended.
    """
    return base64.urlsafe_b64encode(orjson.dumps([_digest(question), *place])).decode().rstrip("=")


def decode(question: str, token: str, parts: int) -> list[str]:
    """The place in a token.

    Args:
        question: what is asked now.
        token: as it was given.
        parts: of how many the place consists.

    Raises:
        BadRequest: the token is of another question, or was never given out.
    """
    try:
        found = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError):
        raise BadRequest(_REFUSAL) from None
    if not isinstance(found, list) or len(found) != parts + 1 or not all(isinstance(part, str) for part in found):
        raise BadRequest(_REFUSAL)
    digest, *place = found
    if digest != _digest(question):
        raise BadRequest(_REFUSAL)
    return place


def moment(written: str) -> datetime:
    """A time out of a place. Raises BadRequest: it is none."""
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError):
        raise refused() from None


def number(written: str) -> int:
    """A place among others out of a token. Raises BadRequest: it is none."""
    if not written.isascii() or not written.isdigit() or len(written) > 9:
        raise refused()
    return int(written)


def identity(written: str) -> UUID:
    """An id out of a place. Raises BadRequest: it is none."""
    try:
        return UUID(written)
    except ValueError:
        raise refused() from None


def refused() -> BadRequest:
    """The refusal of a token whose place is none."""
    return BadRequest(_REFUSAL)


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:12]
