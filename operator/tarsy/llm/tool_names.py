"""Translates tool names into a provider's alphabet and back: `server.tool` to `server__tool`.

Providers take 64 letters, digits, `_` and `-`; MCP servers name their tools as they like. The name a model sees
depends on nothing but the tool's own name, so it never changes in a conversation when other tools come and go. A name
that does not survive the plain replacement gets a readable stem and twelve hex digits of its SHA-256; the two forms
cannot be mistaken for one another, because only the plain form contains `__` and only the other ends in the digits.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

LONGEST = 64
_DIGITS = 12
_ALPHABET = re.compile(r"[A-Za-z0-9_-]+")
_HASHED = re.compile(rf"_[0-9a-f]{{{_DIGITS}}}\Z")


@lru_cache(4096)
def encode_tool_name(name: str) -> str:
    """The name as a provider accepts it: 1 to 64 characters of `[A-Za-z0-9_-]`."""
    plain = name.replace(".", "__", 1)
    if len(plain) <= LONGEST and _ALPHABET.fullmatch(plain) and not _HASHED.search(plain) and _plain(plain) == name:
        return plain
    stem = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", name))[: LONGEST - _DIGITS - 1].strip("_") or "tool"
    return f"{stem}_{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:_DIGITS]}"


def _plain(encoded: str) -> str:
    return encoded.replace("__", ".", 1)


class ToolNames:
    """The names one request uses, for reading a model's answer to it; `spell` is how they were sent."""

    def __init__(self, names: Iterable[str], spell: Callable[[str], str] = encode_tool_name) -> None:
        self._originals = {spell(name): name for name in names}

    def decode(self, encoded: str) -> str:
        """The tool's own name; for a name that was never offered, the nearest reading of what the model wrote."""
        return self._originals.get(encoded, _plain(encoded))
