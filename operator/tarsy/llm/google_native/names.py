"""Translates tool names into Gemini's alphabet: `llm.tool_names`, without a digit or dash in front.

The names of tools begin with their server's, which never begins with `_`, so what is put in front hides no other name.
"""

import hashlib

from tarsy.llm.tool_names import LONGEST, encode_tool_name

_DIGITS = 12


def spell(name: str) -> str:
    """The name as Gemini accepts it: at most 64 characters of `[A-Za-z0-9_-]`, a letter or `_` first."""
    plain = encode_tool_name(name)
    if plain[0].isalpha() or plain[0] == "_":
        return plain
    if len(plain) < LONGEST:
        return f"_{plain}"
    return (
        f"_{plain[: LONGEST - _DIGITS - 2]}_{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:_DIGITS]}"
    )
