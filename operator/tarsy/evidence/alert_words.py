"""Chooses the search terms for earlier investigations of the same subject: the workload, the names and words of an "
"alert.

Pure. Words that say nothing of one incident are left out: short ones, numbers, identifiers and the vocabulary of alert
managers. An alert of any size gives few words, so that a search for them costs the same.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from tarsy.evidence.alerted import read_subject, workload_of

MOST_WORDS = 40
"""Maximum words of an alert that are searched for."""

MOST_ENTITIES = 8
"""Maximum names of an alert that are searched for."""

_MOST_TEXT = 16_384
_WORD = re.compile(r"[a-z][a-z0-9]{3,39}")
_IDENTIFIER = re.compile(r"(?=.*\d)[0-9a-f]{6,}|.*\d.*\d.*\d.*")
_COMMON = frozenset(
    {
        "alert", "alertname", "alerts", "annotations", "cluster", "critical", "default", "description", "endpoint",
        "error", "false", "firing", "from", "have", "http", "https", "info", "instance", "into", "labels", "message",
        "more", "name", "namespace", "none", "null", "over", "receiver", "resolved", "runbook", "service", "severity",
        "starts", "state", "status", "summary", "than", "that", "this", "true", "warning", "which", "with", "your",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlertWords:
    """Holds the search terms for earlier investigations.

    Attributes:
        workload: that the alert is about; None: it names none.
        entities: names of objects in the alert, the best first.
        words: of its texts.
    """

    workload: str | None = None
    entities: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def alert_words(text: str) -> AlertWords:
    """Returns what earlier investigations of the subject of an alert are found by; never raises.

    Args:
        text: of the alert.
    """
    subject = read_subject(text)
    names = list(dict.fromkeys(workload_of(name) for name in subject.names))
    found: dict[str, None] = {}
    for piece in _texts(text):
        for word in _WORD.findall(piece.lower()):
            if word not in _COMMON and not _IDENTIFIER.fullmatch(word):
                found.setdefault(word)
    return AlertWords(names[0] if names else None, tuple(names[:MOST_ENTITIES]), tuple(found)[:MOST_WORDS])


def _texts(text: str) -> Iterator[str]:
    """Yields the texts of JSON without its keys, else the text, as far as they are read."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        yield text[:_MOST_TEXT]
        return
    left, waiting = _MOST_TEXT, [body]
    while waiting and left > 0:
        match waiting.pop(0):
            case str() as value:
                yield value[:left]
                left -= len(value)
            case Mapping() as inner:
                waiting.extend(inner.values())
            case list() as inner:
                waiting.extend(inner)
            case _:
                pass
