"""A masked document keeps its shape: where a tag is a scalar of its own, it is quoted.

`[MASKED_TOKEN]` is a list to YAML and no JSON at all; so a tag that takes the place of a whole plain scalar gets
quotes, where that scalar is a value of JSON or stands in a text of several lines. A single line is prose or a log
line to us, and stays as people write it.
"""

import re

_BEFORE = (b" ", b":", b"[")
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
    """The tag as it stands in the place of text[start:end]: quoted where it is a whole scalar."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before not in _BEFORE:
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
    if not (multiline or b"\n" in text) or before == b":" or before == b"[":
        return tag
    line = left.rpartition(b"\n")[2]
    if after and after in b",}]" and b"{" not in line and b"[" not in line:
        return tag
    if line.endswith(b":") or (line.endswith(b"-") and not line.strip(b" \t-")):
        return b'"' + tag + b'"'
    return tag


def mended_text(text: bytes) -> bytes:
    """The text with quotes around plain scalars of YAML that begin with a tag and go on after it."""
    if b"\n" not in text or (b": [MASKED_" not in text and b"- [MASKED_" not in text):
        return text
    return _BEGINNING.sub(_quoted, text)


def _quoted(line: re.Match[bytes]) -> bytes:
    return line[0] if _TAG.fullmatch(line[2]) else line[1] + b'"' + line[2] + b'"'
