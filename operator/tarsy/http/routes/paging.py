"""Encodes and decodes the `continue` token of lists: the position at which a page ended.

Decision: a token contains a sort key, never an offset, so that new items shift nothing. It also contains a digest
of the query, so that a token of another query is refused instead of returning a wrong page.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import orjson

from tarsy.http.errors import BadRequest

_REFUSAL = "query parameter continue: does not belong to this list and its filters; leave it out to start again"


def encode_continue(question: str, place: Sequence[str]) -> str:
    """Returns a token.

    Args:
        question: identifies the list and its filters, without limit and token.
        place: sort key of the last item of the page.
    """
    return base64.urlsafe_b64encode(orjson.dumps([_digest(question), *place])).decode().rstrip("=")


def decode_continue(question: str, token: str, parts: int) -> list[str]:
    """Returns the sort key in a token.

    Args:
        question: identifies the requested list and its filters.
        token: the token, as received.
        parts: number of texts in a sort key.

    Raises:
        BadRequest: the token belongs to another list, or is malformed.
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
    """Parses a time in a sort key. Raises BadRequest: it is malformed."""
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError):
        raise continue_refused() from None


def number(written: str) -> int:
    """Parses a number in a sort key. Raises BadRequest: it is malformed."""
    if not written.isascii() or not written.isdigit() or len(written) > 9:
        raise continue_refused()
    return int(written)


def identity(written: str) -> UUID:
    """Parses an id in a sort key. Raises BadRequest: it is malformed."""
    try:
        return UUID(written)
    except ValueError:
        raise continue_refused() from None


def continue_refused() -> BadRequest:
    """Returns the error for a token with a malformed sort key."""
    return BadRequest(_REFUSAL)


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:12]
