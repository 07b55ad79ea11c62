"""Validates matches that look random: tokens, keys, base64 (see `tarsy.masking.validators`)."""

import base64
import binascii
import re
from collections import deque

from tarsy.masking.engine import Span
from tarsy.masking.validators import digits

_SAMPLE = 4_096  # bytes of a word that are examined
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_DIGEST = re.compile(rb"(?i)sha\d{1,3}[:-]")
_CLASSES = re.compile(rb"[A-Z]+|[a-z]+|[0-9]+")
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r"
_MIN_LINE = 16
_RUN = re.compile(rb"[A-Za-z0-9]{16}")
_EVENT = re.compile(rb"1[0-9a-f]{15}")
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
# Possessive, and a run of backslashes is read once, from its first one on: so linear.
_BREAKS = re.compile(rb"(?:[\s>|]|\\(?<!\\\\)\\*+[nrt])++")
_LAST = re.compile(rb"[A-Za-z0-9+/=_.-]*+")
_LAST_CHARACTERS = _WORD + b"_.-"
_TAIL = 128  # bytes at the end of a value, doubled until they contain its last line
_AFTER = b" \t\"'\\\r\n"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_PAIR = re.compile(
    rb"(?i)(?:passw(?:or)?d|passphrase|pwd|secret(?:_?key)?|token|api[_-]?key|authorization)[\"']?[ \t]*[=:][ \t]*"
    rb"[\"']?[!-~]{4}|kind:[ ]*Secret|bearer[ ][!-~]{8}"
)


def vendor(value: bytes) -> Span | None:
    """Accepts the value after a vendor's prefix: with digits, and in mixed case or long without a separator."""
    kept = value.rstrip(b".-=/~+_")
    if digits(kept) < 2:
        return None
    mixed = kept.lower() != kept != kept.upper() and not kept.islower()
    return (0, len(kept)) if mixed or _RUN.search(kept) else None


def mixed(value: bytes) -> Span | None:
    """Accepts a word with lower case, upper case and digits."""
    return (0, len(value)) if digits(value) and value.lower() != value != value.upper() else None


def bootstrap(value: bytes) -> Span | None:
    """Accepts a bootstrap token, but not the name of an Event, which ends in a hexadecimal time."""
    drawn = value.partition(b".")[2]
    return None if not digits(drawn) or drawn.isdigit() or _EVENT.fullmatch(drawn) else (0, len(value))


def jwt(value: bytes) -> Span | None:
    """Accepts a JWT over several lines, without an ordinary word after it."""
    start, last = _last_line(value)
    end = start if last.isalpha() and last in (last.lower(), last.title()) else len(value)
    joined = _BREAKS.sub(b"", value[:end])
    return (0, end) if b"." in joined[:-1] and digits(joined) else None


def key_body(value: bytes) -> Span | None:
    """Accepts base64 lines of keys, but not digests, nor words after them."""
    first = _BREAKS.split(value, maxsplit=1)[0]
    if _HEX.fullmatch(first) or not digits(first) or first in (first.upper(), first.lower()):
        return None
    if len(_CLASSES.findall(first)) < 0.25 * len(first):
        return None
    start, last = _last_line(value)
    return 0, start if len(last) < _MIN_LINE and last.isalpha() else len(value)


def _last_line(value: bytes) -> tuple[int, bytes]:
    """Returns the word on the last line of a value, and the start of the breaks before it; no word without breaks."""
    end, size, runs = len(value), _TAIL, deque[re.Match[bytes]]()
    if not value.rstrip(_LAST_CHARACTERS):
        return end, b""
    while len(runs) < 3 and size < 2 * end + 2 * _TAIL:  # the first one may begin before the tail
        size *= 2
        runs = deque(_BREAKS.finditer(value, max(0, end - size)), 3)
    if len(runs) > 1 and runs[-1][0] == b"\n" and runs[-1].end() == end:
        word = _LAST.match(value, runs[-2].end())
        if word and word.end() == end - 1:
            return runs[-2].start(), word[0]
    word = _LAST.match(value, runs[-1].end()) if runs else None
    return (runs[-1].start(), word[0]) if word and word.end() == end else (end, b"")


def key_lines(value: bytes) -> Span | None:
    """Accepts the `key_body` between two other bytes; a match of it has no group, which RE2 would find slowly."""
    start, end = int(value[0] not in _WORD), len(value) - (value[-1] in _AFTER)
    part = key_body(value[start:end])
    return part and (start + part[0], start + part[1])


def encoded_pair(value: bytes) -> Span | None:
    """Accepts base64 that decodes to `password=...` and the like."""
    for skip in range(4):  # what stands before it in the same word need not be of it
        kept = value[skip:].rstrip(b"=").translate(_URL_SAFE)
        kept = kept[: len(kept) - (len(kept) % 4 == 1)]
        decoded = base64.b64decode(kept + b"=" * (-len(kept) % 4))
        if _PAIR.search(decoded):
            return 0, len(value)
    return None


def random_word(value: bytes) -> Span | None:
    """Accepts a value that looks random: long hexadecimals, or mixed letters and digits."""
    kept = value.rstrip(b"=")
    if _HEX.fullmatch(kept):
        return (0, len(value)) if len(kept) >= 32 and digits(kept) and not kept.isdigit() else None
    count = digits(kept)
    if not count or count == len(kept):
        return None
    if kept.isalnum():
        return 0, len(value)
    return (0, len(value)) if len(_CLASSES.findall(kept)) >= 0.3 * len(kept) else None


def base64_word(value: bytes) -> Span | None:
    """Accepts a base64 word of at least 20 characters, but not a digest, a path, or a camel-case name."""
    if value.islower() and b"+" not in value:
        return None
    if _DIGEST.match(value):
        return None
    body = value.rstrip(b"=")
    if _HEX.fullmatch(body):
        return None
    if value.endswith(b"=") and len(value) % 4 == 0:
        return 0, len(value)
    if _decodes_to_text(value):
        return 0, len(value)
    body = body[:_SAMPLE]
    mixed = body != body.upper() and digits(body)
    return (0, len(value)) if mixed and len(_CLASSES.findall(body)) >= 0.4 * len(body) else None


def base64_short(value: bytes) -> Span | None:
    """Accepts a base64 word of 4 to 19 characters that decodes to text and is not an ordinary word or number."""
    if not value.endswith(b"=") and value in (value.upper(), value.lower()):
        return None
    return (0, len(value)) if _decodes_to_text(value) else None


def aws_secret(value: bytes) -> Span | None:
    """Accepts an AWS secret key of 40 characters, but not a digest, a path or a name."""
    if len(value) != 40 or _HEX.fullmatch(value) or value.startswith(b"/"):
        return None
    enough = digits(value) and value.lower() != value != value.upper()
    return (0, len(value)) if enough and len(_CLASSES.findall(value)) >= 0.35 * len(value) else None


def docker_auth(value: bytes) -> Span | None:
    """Accepts the `auth` of a Docker configuration: base64 of user:password."""
    try:
        return (0, len(value)) if b":" in base64.b64decode(value, validate=True) else None
    except binascii.Error:
        return None


def _decodes_to_text(value: bytes) -> bool:
    try:
        decoded = base64.b64decode(value, validate=True)
    except binascii.Error:
        return False
    return bool(decoded) and not decoded.translate(None, _PRINTABLE)
