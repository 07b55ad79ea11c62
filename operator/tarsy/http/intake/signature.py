"""Verifies the HMAC-SHA256 signature that a sender puts into a header.

| sender | header | form |
|---|---|---|
| GitHub and many others | `X-Hub-Signature-256` | `sha256=HEX` |
| PagerDuty | `X-PagerDuty-Signature` | `v1=HEX,v1=HEX` while a key is changed |
| Flux (`generic-hmac`) | `X-Signature` | `sha256=HEX` |
| Grafana | `X-Grafana-Alerting-Signature` | `HEX`, of the time, a colon and the body if it sends the time |
"""

import hashlib
import hmac
import re
from collections.abc import Sequence

SIGNATURE_SECONDS = 300
"""How far the time of a signature may be from this clock, so that an old request cannot be sent again later."""

MOST_SIGNATURES = 8
"""Signatures of one header that are compared."""

_SIGNATURE = re.compile(r"(?:(?:sha256|v1)=)?([0-9a-f]{64})")
_SECONDS = re.compile(r"[0-9]{1,12}")


def signatures_in(header: str) -> tuple[str, ...]:
    """Returns the well-formed signatures in a header, in hex."""
    found = (_SIGNATURE.fullmatch(one.strip()) for one in header.lower().split(",")[:MOST_SIGNATURES])
    return tuple(one[1] for one in found if one)


def signed_time(header: str, now: float) -> bytes | None:
    """Returns what is signed before the body: the time and a colon.

    Args:
        header: the time of the signature, in seconds since 1970.
        now: of this clock, in seconds since 1970.

    Returns:
        None if there is no such time, or it is more than `SIGNATURE_SECONDS` away.
    """
    at = header.strip()
    if not _SECONDS.fullmatch(at) or abs(now - int(at)) > SIGNATURE_SECONDS:
        return None
    return f"{at}:".encode()


def sign(key: str, before: bytes, content: bytes) -> str:
    """Returns the signature, in hex.

    Args:
        key: shared with the sender.
        before: what is signed before the body; may be empty.
        content: the body.
    """
    made = hmac.new(key.encode(), before, hashlib.sha256)
    made.update(content)
    return made.hexdigest()


def is_one_of(made: str, given: Sequence[str]) -> bool:
    """Returns whether a signature is among those of a header, in a time that does not depend on where they differ."""
    found = False
    for one in given:
        found |= hmac.compare_digest(made.encode(), one.encode())
    return found
