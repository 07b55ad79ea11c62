"""Preserves the shape of masked documents: a tag that replaces a whole scalar is quoted.

`[MASKED_TOKEN]` is a list in YAML and invalid in JSON. So a tag that replaces a whole plain scalar is quoted if the
scalar is a JSON value or part of a text of several lines. A single line is treated as prose or a log line, without
quotes.
"""

import re

BEFORE = frozenset((b" ", b":", b"["))
"""Bytes before a value that may be a whole scalar."""
AFTER = frozenset((b"", b" ", b"\t", b"\r", b"\n", b",", b"}", b"]"))
"""Bytes after such a value."""
_OPENS = b":-[ \t"  # before the blank before it: the end of a key, of a dash, of a bracket
_ENDS = b"\r\n,}]"
_BLANK = b" \t"
_WINDOW = 120
_BEGINNING = re.compile(
    rb"""^([ ]*+(?:(?:-[ ]+)++(?:[\w."'/-]++:[ ]+)?+|[\w."'/-]++:[ ]+))"""
    rb"""(\[MASKED_[A-Z0-9_]+\][^\n"\\#]*[^\n"\\#\s])(?=\s*$)""",
    re.MULTILINE,
)
_TAG = re.compile(rb"\[MASKED_[A-Z0-9_]+\]")


def dressed(text: bytes, start: int, end: int, tag: bytes, multiline: bool) -> bytes:
    """Returns the tag for text[start:end], quoted if it replaces a whole scalar.

    Args:
        text: The text.
        start: Start of the match.
        end: End of the match.
        tag: The tag.
        multiline: Whether the text is part of one with several lines.
    """
    before, after = text[start - 1 : start], text[end : end + 1]
    if before not in BEFORE:
        return tag
    if before == b" ":
        if (
            text.startswith(b": ", start - 2)
            and (not after or after in b"\r\n")
            and text[start - 3 : start - 2] != b'"'
        ):
            return b'"' + tag + b'"' if multiline or b"\n" in text else tag  # a line of YAML, as most
        if text[start - 2 : start - 1] not in _OPENS:
            return tag
    if after in _BLANK and after:
        after = text[end : end + _WINDOW].lstrip(_BLANK)[:1]
        if after == b"#":
            after = b""
    if after not in _ENDS:
        return tag
    left = text[max(0, start - _WINDOW) : start].rstrip(_BLANK)
    if left.rstrip(b"[ ").endswith(b'":'):
        key = left.rstrip(b"[ ")[:-2]
        quote = b"\\" * (len(key) - len(key.rstrip(b"\\"))) + b'"'
        return quote + tag + quote
    if not (multiline or b"\n" in text) or before != b" ":
        return tag
    line = left.rpartition(b"\n")[2]
    if after and after in b",}]" and b"{" not in line and b"[" not in line:
        return tag
    if line.endswith(b":") or (line.endswith(b"-") and not line.strip(b" \t-")):
        return b'"' + tag + b'"'
    return tag


def mended_text(text: bytes) -> bytes:
    """Quotes plain YAML scalars that begin with a tag and continue after it."""
    if b"\n" not in text or (b": [MASKED_" not in text and b"- [MASKED_" not in text):
        return text
    return _BEGINNING.sub(_quoted, text)


def _quoted(line: re.Match[bytes]) -> bytes:
    return line[0] if _TAG.fullmatch(line[2]) else line[1] + b'"' + line[2] + b'"'
