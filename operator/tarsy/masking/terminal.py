"""Removes the sequences by which a terminal draws colours, moves and sets titles (ECMA-48), also those written out.

Coloured logs have them between a key and its value, where rules would not find the secret; without them a text is what
people read in a terminal. They are removed as they are, as in JSON (`\\u001b[31m`), as Go, Python and shells quote
them (`\\x1b[31m`, `\\033[31m`, `\\e[31m`), and as `cat -v` shows them (`^[[31m`); of quoted ones only colours and
erasing. No sequence crosses a line, so a text and its lines lose the same.
"""

import re

# Begins with the bracket, which a text is searched for ten times as fast as for what is before it.
_QUOTED_START = re.compile(r"\[(?<=(?:1b|1B|33|\\e|\^\[)\[)")
# Each alternative begins where no earlier character would begin it, and has a limit, so that no input is read twice.
_SEQUENCE = re.compile(
    "(?:(?<!\x1b)\x1b+\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    "|(?<!\x1b)\x1b+[\\]PX^_][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x9c|\x1b\\\\)"
    "|(?<!\x1b)\x1b+[ -/]{0,8}[0-OQ-WYZ`-~]"
)
_QUOTED = re.compile(r"(?:(?<!\\)\\+(?:u001[bB]|x1[bB]|033|e)|\^\[)\[[0-9;:]{0,64}[mK]")


def has_sequences(text: str) -> bool:
    """Returns whether a text may contain sequences of a terminal, or the beginning of one."""
    return "\x1b" in text or "\x9b" in text or _QUOTED_START.search(text) is not None


def without_sequences(text: str) -> str:
    """Removes the sequences of a terminal from a text of any size, in time linear in it."""
    if not has_sequences(text):
        return text
    return _QUOTED.sub("", _SEQUENCE.sub("", text))
