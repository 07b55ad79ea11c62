"""Validates matches: returns the part of a match that is a secret, or None.

RE2 has no lookaround, and many secrets differ from ordinary words only in their randomness; so a rule may name a
validator, a function of the matched value. Validators see only the value, keep no state, and skip tags of earlier
passes: masking is idempotent.
"""

import re
from collections.abc import Callable

from tarsy.masking.engine import Span

Validator = Callable[[bytes], Span | None]

TAG_START = b"[MASKED_"
_MIN_PASSWORD = 6

_REFERENCE = re.compile(rb"\$\{[^}]*\}|\$[A-Z_]+|\$\([^)]*\)|\{\{.*|<[A-Za-z _-]*>?|%\([a-z_]+\)s|\d+ bytes", re.DOTALL)
_REFERENCE_STARTS = frozenset(b"$<{%0123456789")
# Each alternative begins with a literal, which makes its first pass fast; a run of backslashes is read once, from its
# first one on.
_NEXT_FIELD = re.compile(
    rb";[\w.-]+=|&[\w.-]+=|,[\w.-]+=|;</[A-Za-z]|</[A-Za-z]|\\(?<!\\\\)\\*+[nrt](?:\s|-|[\w.-]*[:=]|$)"
)
_COMMENT = re.compile(rb"[ \t]#")
_LDAP_SCHEME = re.compile(rb"\{[A-Za-z0-9-]+\}.")
_STRUCTURES = frozenset(b"[({")
_DIGITS = b"0123456789"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# `rules.parts.SEP` before a value, which begins with neither a quote nor a backslash.
_SEPARATOR = re.compile(rb"""(?:\\*+["'`])?+[ \t]*+(?:(?:=>|:=)(?=[ \t]*+[^\s"'`\\])|[:=])[ \t]*+""")
_TRAILING = b"\\,;)}]>"
_PROSE = re.compile(
    rb"(?i)(?:aws4-.*|username=.*|auth\w*|tokens?|headers?|schemes?|credentials?|realm=.*|error.*|challenge|is|not|and|or)"
)
_STATE = re.compile(
    rb"(?i)(?:is|was|not|no|none|null|nil|true|false|yes|on|off|and|or|for|from|with|must|should|cannot|can|has|the|a|an"
    rb"|enabled?|disabled?|required|optional|missing|incorrect|invalid|valid|wrong|correct|expired|expires|changed|change"
    rb"|rotated?|rotation|updated?|reset|empty|unset|set|policy|protected|failed|failure|rejected|accepted|denied|hash"
    rb"|directive|parameter|option|setting|config(?:uration)?|file|field|value|header|auth\w*|string|prompt|based|store"
    rb"|redacted|hidden|secret|unchanged|unknown|unavailable|undefined|example|placeholder)[.,:;!?]*"
)
_MEASURE = re.compile(
    rb"(?i)v?\d+(?:[.:/_-]\d+)+(?:[a-z]{1,5}\d{0,3})?|v\d+(?:(?:alpha|beta|rc)\d*)?|\d{4}-\d\d-\d\d.*|(?:\d+[hms]){2,}"
    rb"|\d[\d.]*(?:[kmgtpe]i?b?|[mun]?s|m|h|d|bytes?|seconds?|minutes?|hours?|days?|[snrt][tdh]|x|px|%)?"
    rb"|(?:sha|aes|rsa|hmac|md|utf|v|rs|hs|es|x)-?\d.*|base\d+.*"
)
_OBJECT = re.compile(rb"[a-z0-9]+(?:[-./_][a-z0-9]+)+")
_PORT = re.compile(rb"\d{1,5}(?:[/?#,]|$)")
_HOST_END = re.compile(rb"[/?#\0]")
_HOST = re.compile(rb"(?i)localhost|[a-z0-9-]*+\.[a-z0-9.-]*+(?<=[a-z0-9])(?::\d+)?|[a-z0-9-]++:\d+")
_SECRET_WORD = re.compile(rb"(?i)pass|pwd|secret|token|key|cred|auth|pin")
_PUBLIC = re.compile(rb"(?i).*(?:user(?:name)?|host(?:name)?|port|name|url|version|region|mode|level|zone|database|db)")
_EXPRESSION = re.compile(rb"\(|^(?:self|this|\.{0,2}/|~/)|^[a-z_]+(?:\.[a-z_]+)+$")  # of a program, or a path
_NOT_HERE = re.compile(rb"<set |\d{1,4}[,;]")  # what kubectl describes; counts of tests; starts as a reference does
_ENTRY_VALUE = re.compile(rb"""(?i)value\\*["']?[ ]?[:=][ ]?""")
_NODE = re.compile(rb":[ \t]++(?=[&!])")
_PROPERTIES = re.compile(rb"(?:[&!]\S*+[ \t]++){1,2}+")
_UNIT_FILES = (
    b".service", b".socket", b".timer", b".target", b".mount", b".slice", b".scope", b".device", b".path", b".swap",
)  # fmt: skip


def whole_match(value: bytes) -> Span | None:
    """Accepts every value but a tag."""
    return None if value.startswith(TAG_START) else (0, len(value))


def password(value: bytes) -> Span | None:
    """Accepts a password of at least 6 characters, up to the next field; not a reference, placeholder or structure."""
    if value.isalnum():
        return (0, len(value)) if len(value) >= _MIN_PASSWORD else None
    if len(value) < _MIN_PASSWORD:
        return None
    start = 0
    if value[0] in _STRUCTURES:
        if value.startswith((b"[", b"(")):
            if value.startswith(TAG_START):
                return None
            start = 1
        elif not _LDAP_SCHEME.match(value):
            return None
    tag = value.find(TAG_START)
    if tag >= 0:
        value = value[:tag]
        if value.endswith((b":", b"=")):
            return None
    cut = _NEXT_FIELD.search(value[start + 1 :])
    end = start + len(value[start : start + 1 + cut.start() if cut else None].rstrip(_TRAILING))
    return None if end - start < _MIN_PASSWORD or _is_reference(value, start) else (start, end)


def bare_password(entry: bytes) -> Span | None:
    """Accepts the `password` in a key of letters, a separator and a value."""
    return _bare(entry, password)


def bare_directory(entry: bytes) -> Span | None:
    """Accepts the value of a key like `bare_password`, but not the directory of the shell."""
    return _bare(entry, working_directory)


def _bare(entry: bytes, judge: Validator) -> Span | None:
    rest = entry.lstrip(_LETTERS)
    value = rest[1:]
    if rest[0] not in b":=" or not value[:1].isalnum():
        separator = _SEPARATOR.match(rest)
        value = rest[separator.end() :] if separator else b""
    part, start = judge(value), len(entry) - len(value)
    return part and (start + part[0], start + part[1])


def quoted_password(value: bytes) -> Span | None:
    """Accepts a whole password in quotes."""
    if len(value) < _MIN_PASSWORD or value.startswith(TAG_START) or _REFERENCE.fullmatch(value):
        return None
    return 0, len(value)


def password_line(value: bytes) -> Span | None:
    """Accepts the rest of a line as a password (a plain YAML scalar may contain spaces), without a comment."""
    if value.isalnum():
        return (0, len(value)) if len(value) >= _MIN_PASSWORD else None
    if value[:1] in (b"[", b"{"):
        return None
    comment = _COMMENT.search(value) if b"#" in value else None
    kept = (value[: comment.start()] if comment else value).rstrip(b" \t\r,}]")
    if len(kept) < _MIN_PASSWORD:
        return None
    if kept[0] in _REFERENCE_STARTS and (_REFERENCE.fullmatch(kept) or _NOT_HERE.match(kept)):
        return None
    return 0, len(kept)


def entry_value(value: bytes) -> Span | None:
    """Accepts the value in `name: DB_PASSWORD, value: ...`; a match of it has no group, which RE2 would find slowly."""
    start = _ENTRY_VALUE.search(value).end()  # type: ignore[union-attr]
    part = password_line(value[start:])
    return part and (start + part[0], start + part[1])


def node_value(entry: bytes) -> Span | None:
    """Accepts a YAML value with the anchor and tag before it: quoted, the rest of a line, or the lines of a block.

    The entry begins with its key; a match of it has no group, which RE2 would find slowly.
    """
    start = _NODE.search(entry).end()  # type: ignore[union-attr]
    first = _PROPERTIES.match(entry, start).end()  # type: ignore[union-attr]
    rest = entry[first:]
    if rest[:1] in (b"|", b">"):
        return password_line(rest.partition(b"\n")[2].lstrip(b" \t")) and (start, len(entry))
    if rest[:1] in (b'"', b"'"):
        return quoted_password(rest.strip(rest[:1])) and (start, len(entry))
    part = password_line(rest)
    return part and (start, first + part[1])


def spoken(value: bytes) -> Span | None:
    """Accepts a word after "the password is", if it has a digit and so is not prose."""
    kept = value.rstrip(_TRAILING + b".!?")
    found = password(kept)
    letters = kept.lower() != kept.upper()
    if found is None or not digits(kept) or not letters or _MEASURE.fullmatch(kept):
        return None
    return found


def spoken_of(value: bytes) -> Span | None:
    """Accepts a word after "password of bob:", like `spoken`, but not the name of an object."""
    return None if _OBJECT.fullmatch(value.rstrip(_TRAILING)) else spoken(value)


def config_word(value: bytes) -> Span | None:
    """Accepts the value of a directive with a blank after its key, but not words of prose."""
    return None if _STATE.fullmatch(value) else password(value)


def next_line(value: bytes) -> Span | None:
    """Accepts a value on the line after its key: one word that is not a state."""
    return None if b" " in value.strip() or _STATE.fullmatch(value.strip()) else password_line(value)


def short_secret(value: bytes) -> Span | None:
    """Accepts a short value of a secret key: letters and digits, but not the name of an object."""
    kept = value.rstrip(b"=")
    count = digits(kept)
    if count < 2 or count == len(kept) or _MEASURE.fullmatch(kept) or value.startswith(TAG_START):
        return None
    return None if _OBJECT.fullmatch(kept) else (0, len(value))


def header(value: bytes) -> Span | None:
    """Accepts the value of a secret header, but not a name or words of prose."""
    if _STATE.fullmatch(value) or whole_match(value) is None or _EXPRESSION.search(value):
        return None
    return not_a_name(value) if digits(value) or value.lower() != value != value.upper() else None


def database_password(url: bytes) -> Span | None:
    """Accepts the password in a database URL, which may contain `/` and `@`; not a port or part of the next URL."""
    return _url_part(url, web=False)


def web_password(url: bytes) -> Span | None:
    """Accepts the password in any other URL, up to the first host, because the path may contain `@`."""
    return _url_part(url, web=True)


def _url_part(url: bytes, *, web: bool) -> Span | None:
    """Returns the password in `scheme://user:password@h`, of which a single character of the host is there."""
    start, end = url.find(b":", url.find(b"://") + 3) + 1, len(url) - 2
    value = url[start:end]
    if value.isalnum() and not value[:1].isdigit():
        return start, end
    if value.startswith(TAG_START) or _REFERENCE.fullmatch(value) or _PORT.match(value):
        return None
    following = value.find(b"://")
    if following >= 0:
        value = value[: value.rfind(b"@", 0, following)] if b"@" in value[:following] else b""
    host_end = query = -1  # behind the current @; looked for once, so that a value of nothing but @ is read once
    last = value.rfind(b"=")
    at = value.find(b"@")
    while at >= 0:
        if host_end <= at:
            found = _HOST_END.search(value, at + 1)
            if found is None:
                break
            host_end = found.start()
        mark = value[host_end : host_end + 1]
        if mark == b"/" and query <= host_end:
            query = value.find(b"?", host_end + 1) % (len(value) + 1)  # the end without one
        if (
            (mark == b"?" and last > host_end)
            or (mark == b"/" and last > query)
            or (web and mark == b"/" and _HOST.fullmatch(value, at + 1, host_end))
        ):
            value = value[:at]
            break
        at = value.find(b"@", at + 1)
    return (start, start + len(value)) if value else None


def literal(value: bytes) -> Span | None:
    """Accepts the value of `--from-literal key=value`, unless the key is public."""
    key, _, word = value.partition(b"=")
    if len(word) < _MIN_PASSWORD or whole_match(word) is None or _REFERENCE.fullmatch(word):
        return None
    if not _SECRET_WORD.search(key) and (not digits(word) or _PUBLIC.fullmatch(key) or _MEASURE.fullmatch(word)):
        return None
    return len(key) + 1, len(value)


def working_directory(value: bytes) -> Span | None:
    """Accepts a `password`, but not the shell's PWD=/some/where."""
    return None if value.startswith((b"/", b"~")) else password(value)


def flag(value: bytes) -> Span | None:
    """Accepts the value of a command-line flag, but not a reference."""
    kept = value.rstrip(_TRAILING)
    if not kept or kept.startswith((TAG_START, b"[")) or _REFERENCE.fullmatch(kept):
        return None
    return 0, len(kept)


def url_password(value: bytes) -> Span | None:
    """Accepts the password of a URL, but not a reference."""
    return None if value.startswith(TAG_START) or _REFERENCE.fullmatch(value) else (0, len(value))


def credential(value: bytes) -> Span | None:
    """Accepts the value after an authorization scheme, but not words of prose."""
    return None if value.startswith(TAG_START) or _PROSE.fullmatch(value) else (0, len(value))


def last_word(value: bytes) -> Span | None:
    """Accepts the `credential` that is the last word of a match; it has no group, which RE2 would find slowly."""
    start = max(value.rfind(b" "), value.rfind(b"\t")) + 1
    return (start, len(value)) if credential(value[start:]) else None


def bearer(value: bytes) -> Span | None:
    """Accepts the value after `Bearer` alone, if it has a digit."""
    return (0, len(value)) if credential(value) and digits(value) else None


def raw_authorization(value: bytes) -> Span | None:
    """Accepts an Authorization without a scheme: long and not a name, or with a digit."""
    if _EXPRESSION.search(value):
        return None
    return not_a_name(value) if len(value) >= 20 and whole_match(value) else bearer(value)


def email(value: bytes) -> Span | None:
    """Accepts an e-mail address, but not the git user of a repository or a unit of systemd."""
    if value.startswith(b"git@") or value.endswith(_UNIT_FILES):
        return None
    return 0, len(value)


def not_a_name(value: bytes) -> Span | None:
    """Accepts a value unless it consists of lower-case words with separators, like names of objects."""
    if re.fullmatch(rb"[a-z]{1,15}(?:[-_./][a-z]{1,15})+", value):
        return None
    return 0, len(value)


def _is_reference(value: bytes, start: int) -> bool:
    found = _REFERENCE.match(value, start) if value[start] in _REFERENCE_STARTS else None
    return found is not None and not value[found.end() :].strip(_TRAILING)


def digits(value: bytes) -> int:
    """Returns the number of digits in a word."""
    return len(value) - len(value.translate(None, _DIGITS))
