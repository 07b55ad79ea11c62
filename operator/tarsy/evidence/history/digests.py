"""Computes keyed digests, which show that a value changed without showing the value.

Decision: HMAC-SHA-256 with a key of the installation. A plain hash of a short value (a password, a flag) is found by
trying; without the key, which is not in the database, it is not.
"""

import hashlib
import hmac

import orjson

from tarsy.evidence.fields import Object

MIN_KEY_BYTES = 32
"""Minimum length of the key."""

_SHOWN_BYTES = 12
_VERSION_BYTES = 16


class Digest(str):
    """A digest that stands for a value; no text of an object is one, whatever it looks like."""

    __slots__ = ()


class Digests:
    """Computes digests with one key.

    Args:
        key: at least 32 bytes.

    Raises:
        ValueError: the key is too short.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ValueError(f"the key has {len(key)} bytes; it needs at least {MIN_KEY_BYTES}")
        self._key = key
        self.key_id = self._digest(b"key", b"")[:8]
        """Identifies the key without revealing it."""

    def of_value(self, value: str) -> Digest:
        """Returns the digest that stands for a value."""
        shown = self._digest(b"value", value.encode("utf-8", "surrogatepass"))[:_SHOWN_BYTES].hex()
        return Digest(f"digest:{shown}")

    def of_state(self, selected: Object) -> bytes:
        """Returns the digest of the state of an object: it differs when anything of it differs."""
        return self._digest(b"state", _dumped(selected))[:_VERSION_BYTES]

    def _digest(self, purpose: bytes, content: bytes) -> bytes:
        return hmac.new(self._key, purpose + b"\0" + content, hashlib.sha256).digest()


def _dumped(selected: Object) -> bytes:
    try:
        return orjson.dumps(selected, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # a lone surrogate
        return repr(selected).encode("utf-8", "backslashreplace")
