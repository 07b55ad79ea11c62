"""Defines a rule, and the building blocks of its regexes: keys, separators, quoted and bare values."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from tarsy.masking.validators import Validator, entry_value, node_value, password_line, quoted_password, whole_match


@dataclass(frozen=True, slots=True)
class Rule:
    """One regex of a pattern.

    Args:
        trigger: Pattern that a text must contain for the regex to run (RE2 syntax). It must match no later than the
            word that the regex replaces, because words without a trigger are shown while the text still streams.
        regex: RE2 syntax, on bytes; its first matching group is replaced.
        judge: Validator of the match.
        tag: Replacement; empty: the tag of the pattern.
        lines: Whether a match may span lines.
        counts: Whether the trigger counts the characters of a word (`tarsy.masking.triggers`).
        mark: What stands in each match once, before the value; empty: nothing in particular. Rules of one mark find
            nothing where an earlier one of them replaced the value, so they are skipped if it did so at each mark.
    """

    trigger: bytes
    regex: bytes
    judge: Validator = whole_match
    tag: str = ""
    lines: bool = False
    counts: bool = False
    mark: bytes = b""


# Between a key and its value: the key's closing quote (escaped as deep as it may be), and a colon or an equals sign.
SEP = rb"""(?:\\*["'`])?[ \t]*(?:=>|:=|[:=])[ \t]*"""
OPEN = rb"""(?:\\*["'`])?"""
KEY_START = rb"(?:^|[^A-Za-z])"
# A value in quotes: plain, single, or inside a JSON string inside a JSON string. Then one without quotes.
_DOUBLE = rb'"((?:[^"\\\n]|\\[^\n])+)'
_SINGLE = rb"'((?:[^'\n]|'')+)"
_ESCAPED = rb'\\"((?:[^"\\\n]|\\\\(?:\\\\|\\"|[^\\"\n]))+)'
_DEEPER = rb'\\{2,}"([^"\\\n]+)'
BARE = rb"""([^\s"'`\\][^\s"'`]*)"""
# At least as long as a password; without a group, which RE2 would find slowly: the judge knows where the value begins.
LONG_BARE = rb"""[^\s"'`\\][^\s"'`]{5,}"""
QUOTED = rb"(?:" + b"|".join((_DOUBLE, _SINGLE, _ESCAPED, _DEEPER)) + rb")"
LONG = rb"([A-Za-z0-9_\-.+/=~]{20,})"
# An argument of a command, in quotes or without.
ARGUMENT = rb"""(?:\\*"([^"\n\\]+)|'([^'\n]+)|([^\s"'`|<>;\\-][^\s"'`|<>;\\]*))"""
ATTACHED = rb"""(?:\\*"([^"\n\\]+)|'([^'\n]+)|([^\s"'`|<>;\\=-][^\s"'`|<>;\\]*))"""


# What may stand before a YAML value: an anchor, a tag.
_PROPERTY = rb"""(?:(?:&[^\s"'`]+|!!\w+|!<[^\s>"'`]*>)[ \t]+)"""
_PROPERTIES = _PROPERTY + rb"{0,2}"
_BLOCK = rb"[|>][0-9]?[+-]?[0-9]?[ \t]*(?:#[^\n]*)?"
_BLOCK_VALUE = rb"[^\s-][^\n]*(?:\r?\n[ \t]+[A-Za-z0-9+/=_.-]{16,}[ \t]*)*"


def named(key: bytes, value: bytes = LONG) -> bytes:
    """Returns the regex of a value after its key."""
    return rb"(?i)" + key + SEP + _PROPERTIES + OPEN + value


def near(key: bytes) -> bytes:
    """Returns the trigger of a value after its key."""
    return rb"(?i)" + key + rb"""\\*["'`]?[ \t]*[:=]"""


def near_quoted(key: bytes) -> bytes:
    """Returns the trigger of a quoted value after its key."""
    return rb"(?i)" + key + SEP + rb"""\\*["']"""


def near_bare(key: bytes) -> bytes:
    """Returns the trigger of a bare value after its key."""
    return rb"(?i)" + key + SEP + rb"""[^\s"'`\\]"""


def environment(key: bytes, judge: Validator = quoted_password) -> tuple[Rule, ...]:
    """Builds rules for `name: DB_PASSWORD`, `value: ...` of container environments and the like, in YAML and JSON."""
    trigger = rb"""(?i)\b(?:name|key|parameter_?key)\\*["']?[ ]?[:=][ ]?\\*["']?[\w.-]*""" + key
    head = trigger + rb"""\\*["']?,?(?:\s|\\n)*\\*["']?(?:parameter_?)?value\\*["']?[ ]?[:=][ ]?"""
    bare = rb"""[^\s"'`\\|>][^\n"'\\]*"""
    quoted = _PROPERTIES + QUOTED
    return Rule(trigger, head + quoted, judge, lines=True), Rule(trigger, head + bare, entry_value, lines=True)


def block(key: bytes) -> tuple[Rule, ...]:
    """Builds rules for YAML block scalars (`password: |`), also within a JSON string."""
    head = rb"(?i)" + key + rb"""["']?:[ \t]+""" + _BLOCK
    value = rb"\r?\n[ \t]+(" + _BLOCK_VALUE + rb")"
    escaped = rb"""(?:\\+[nr])+[ \t]+([^\s\\"-][^\n\\"]*)"""
    return (
        Rule(head, head + value, password_line, lines=True),
        Rule(head + rb"\\", head + escaped, password_line),
    )


def node(key: bytes) -> tuple[Rule, ...]:
    """Builds rules for a YAML value after an anchor or a tag, which are masked with it."""
    head, properties = rb"(?i)" + key + rb"""["']?:[ \t]+""", _PROPERTY + rb"{1,2}"
    value = rb"""(?:"(?:[^"\\\n]|\\[^\n])+"?|'(?:[^'\n]|'')+'?|[^\s"'`\\|>{\[$*&!#][^\n"'\\]*)"""
    trigger = head + _PROPERTY
    block = _BLOCK + rb"\r?\n[ \t]+" + _BLOCK_VALUE
    return (
        Rule(trigger, head + properties + value, node_value),
        Rule(trigger + rb"[^\n]*[|>]", head + properties + block, node_value, lines=True),
    )


def spellings(words: Iterable[str]) -> bytes:
    """Returns alternatives for non-ASCII words in all cases: RE2 sees bytes here, and cannot fold their case."""
    found: dict[bytes, None] = {}
    for word in words:
        for cased in (word, word.upper(), word.capitalize(), word.title()):
            for form in ("NFC", "NFD"):
                found[unicodedata.normalize(form, cased).encode()] = None
    return rb"(?-i:" + b"|".join(found) + rb")"
