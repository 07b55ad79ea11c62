"""Second looks: whether what a pattern found is a secret, and which part of it.

RE2 has no lookaround, and many secrets differ from ordinary words only in how random they look; so a rule may name a
judge, a function of the found value that gives the part to mask, or None to leave it. Judges never see more than the
value, keep no state, and leave what an earlier pass wrote: masking twice is masking once.
"""

import base64
import binascii
import re
from collections.abc import Callable

from tarsy.masking.engine import Span

Judge = Callable[[bytes], Span | None]

TAG_START = b"[MASKED_"
_MIN_PASSWORD = 6
_SAMPLE = 4_096  # bytes of a word that tell what it looks like

_REFERENCE = re.compile(rb"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*|<[A-Za-z _-]*>?|%\([a-z_]+\)s|\d+ bytes", re.DOTALL)
_NEXT_FIELD = re.compile(rb"[;&,][\w.-]+=|\\+[nrt](?:\s|-|[\w.-]*[:=]|$)")
_COMMENT = re.compile(rb"[ \t]#")
_LDAP_SCHEME = re.compile(rb"\{[A-Za-z0-9-]+\}.")
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_DIGEST = re.compile(rb"(?i)sha\d{1,3}[:-]")
_CLASSES = re.compile(rb"[A-Z]+|[a-z]+|[0-9]+")
_DIGITS = b"0123456789"
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r"
_TRAILING = b"\\,;)}]>"
_PROSE = re.compile(rb"(?i)(?:auth\w*|tokens?|headers?|schemes?|credentials?|realm=.*|error.*|challenge|is|not|and|or)")
_UNIT_FILES = (
    b".service", b".socket", b".timer", b".target", b".mount", b".slice", b".scope", b".device", b".path", b".swap",
)  # fmt: skip


def whole(value: bytes) -> Span | None:
    """Every value but a tag."""
    return None if value.startswith(TAG_START) else (0, len(value))


def password(value: bytes) -> Span | None:
    """A password of at least 6 characters, up to the next field; not a reference, a placeholder or a structure."""
    if value.isalnum():
        return (0, len(value)) if len(value) >= _MIN_PASSWORD else None
    start = 0
    if value[:1] in (b"[", b"("):
        if value.startswith(TAG_START):
            return None
        start = 1
    if value[:1] == b"{" and not _LDAP_SCHEME.match(value):
        return None
    tag = value.find(TAG_START)
    if tag >= 0:
        value = value[:tag]
        if value.endswith((b":", b"=")):
            return None
    cut = _NEXT_FIELD.search(value, start + 1)
    end = len(value[: cut.start()] if cut else value)
    end = start + len(value[start:end].rstrip(_TRAILING))
    if end - start < _MIN_PASSWORD or _is_reference(value[start:]):
        return None
    return start, end


def quoted_password(value: bytes) -> Span | None:
    """A password in quotes: all of it."""
    if len(value) < _MIN_PASSWORD or value.startswith(TAG_START) or _REFERENCE.fullmatch(value):
        return None
    return 0, len(value)


def password_line(value: bytes) -> Span | None:
    """A password that is the rest of its line (a plain YAML scalar may hold spaces), without a comment."""
    if value.startswith((b"[", b"{")):
        return None
    comment = _COMMENT.search(value)
    kept = (value[: comment.start()] if comment else value).rstrip(b" \t\r,}]")
    if len(kept) < _MIN_PASSWORD or _REFERENCE.fullmatch(kept) or kept.startswith(b"<set to the key"):
        return None
    return 0, len(kept)


def working_directory(value: bytes) -> Span | None:
    """`password`, but PWD=/some/where is the shell's."""
    return None if value.startswith((b"/", b"~")) else password(value)


def flag(value: bytes) -> Span | None:
    """The value of a command line flag: any but a reference."""
    kept = value.rstrip(_TRAILING)
    if not kept or kept.startswith((TAG_START, b"[")) or _REFERENCE.fullmatch(kept):
        return None
    return 0, len(kept)


def url_password(value: bytes) -> Span | None:
    """The password part of a URL: any but a reference."""
    return None if value.startswith(TAG_START) or _REFERENCE.fullmatch(value) else (0, len(value))


def credential(value: bytes) -> Span | None:
    """What follows an authorization scheme: not the words that follow it in prose."""
    return None if value.startswith(TAG_START) or _PROSE.fullmatch(value) else (0, len(value))


def bearer(value: bytes) -> Span | None:
    """What follows a lone `Bearer`: something with a digit or of mixed case."""
    return (0, len(value)) if credential(value) and _digits(value) else None


def email(value: bytes) -> Span | None:
    """An address: not git's user in a repository's name, not a unit of systemd."""
    if value.startswith(b"git@") or value.endswith(_UNIT_FILES):
        return None
    return 0, len(value)


def random_word(value: bytes) -> Span | None:
    """A value that looks drawn and not written: long hexadecimals, or letters and digits in no word's order."""
    kept = value.rstrip(b"=")
    if _HEX.fullmatch(kept):
        return (0, len(value)) if len(kept) >= 32 and _digits(kept) and not kept.isdigit() else None
    digits = _digits(kept)
    if not digits or digits == len(kept):
        return None
    if kept.isalnum():
        return 0, len(value)
    return (0, len(value)) if len(_CLASSES.findall(kept)) >= 0.3 * len(kept) else None


def not_a_name(value: bytes) -> Span | None:
    """A value that is not made of lower-case words with separators, as names of objects are."""
    if re.fullmatch(rb"[a-z]{1,15}(?:[-_./][a-z]{1,15})+", value):
        return None
    return 0, len(value)


def base64_word(value: bytes) -> Span | None:
    """A base64 word of at least 20 characters: not a digest, a path, or a name in camel case."""
    if _DIGEST.match(value):
        return None
    body = value.rstrip(b"=")
    if (body.islower() and b"+" not in body) or _HEX.fullmatch(body):
        return None
    if value.endswith(b"=") and len(value) % 4 == 0:
        return 0, len(value)
    if _decodes_to_text(value):
        return 0, len(value)
    body = body[:_SAMPLE]
    mixed = body != body.upper() and _digits(body)
    return (0, len(value)) if mixed and len(_CLASSES.findall(body)) >= 0.4 * len(body) else None


def base64_short(value: bytes) -> Span | None:
    """A base64 word of 4 to 19 characters: one that decodes to text, and is not an ordinary word or number."""
    if not value.endswith(b"=") and value in (value.upper(), value.lower()):
        return None
    return (0, len(value)) if _decodes_to_text(value) else None


def aws_secret(value: bytes) -> Span | None:
    """A word of 40 characters as AWS draws them: not a digest, not a path, not a name."""
    if len(value) != 40 or _HEX.fullmatch(value) or value.startswith(b"/"):
        return None
    enough = _digits(value) and value.lower() != value != value.upper()
    return (0, len(value)) if enough and len(_CLASSES.findall(value)) >= 0.35 * len(value) else None


def docker_auth(value: bytes) -> Span | None:
    """The `auth` of a Docker configuration: base64 of user:password."""
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


def _is_reference(value: bytes) -> bool:
    found = _REFERENCE.match(value)
    return found is not None and not value[found.end() :].strip(_TRAILING)


def _digits(value: bytes) -> int:
    return len(value) - len(value.translate(None, _DIGITS))
