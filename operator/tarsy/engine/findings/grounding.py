"""Finds the entities of a claim that occur in nothing the claim rests on.

A citation that holds shows that its quote exists, not that the quote says what the claim says: the commonest false
finding has a true quote and another claim. So the names, numbers, images and times of a claim must occur in its quotes,
in the alert, or in what its calls asked about. A claim that names something else is supported, but not grounded.

Decision: entities are found by their shape, without a model and without a list of words: numbers, names that have a
digit, an underscore, a dot, a slash or a colon, and names beside the kind of a Kubernetes object. Plain words are no
entities, so that a claim may be worded freely. Where the shape leaves room, the reading that finds the entity wins: a
wrong objection costs confidence in a finding that is right.
"""

import re
from collections.abc import Iterable

LONGEST = 200
"""Maximum characters of an entity; a longer token is not looked for."""

MOST = 8
"""Maximum entities that are reported of a claim."""

_MASKED = re.compile(r"\[MASKED_[A-Z0-9_]+\]")
_TOKEN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@%+-]*")
_PARTS = re.compile(r"[/:@]+")
_NUMBER = re.compile(r"(\d+(?:\.\d+)*)(?:%|[A-Za-z]{1,4})?")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_KINDS = frozenset(
    {
        "alert",
        "configmap",
        "container",
        "cronjob",
        "daemonset",
        "deployment",
        "endpoint",
        "hpa",
        "image",
        "ingress",
        "job",
        "namespace",
        "networkpolicy",
        "node",
        "pdb",
        "persistentvolume",
        "persistentvolumeclaim",
        "pod",
        "pv",
        "pvc",
        "quota",
        "replicaset",
        "resourcequota",
        "route",
        "secret",
        "service",
        "serviceaccount",
        "statefulset",
        "storageclass",
        "workload",
    }
)
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc", "vs", "and/or", "either/or", "n/a", "w/o", "read/write"})


def ungrounded_entities(claim: str, grounds: Iterable[str], history: str = "") -> tuple[str, ...]:
    """Returns the entities of a claim that occur in none of the texts, in their order.

    Args:
        claim: text of the claim.
        grounds: quotes, alert, arguments of the cited calls.
        history: what the model was told about earlier investigations, whose hyphenated words are names too.
    """
    wanted = (*entities(claim), *sorted(_hyphenated(claim) & _hyphenated(history)))
    if not wanted:
        return ()
    text = _GROUPED.sub("", "\n".join(grounds)).lower()
    return tuple(one for one in dict.fromkeys(wanted) if not _occurs(one.lower(), text))[:MOST]


def entities(claim: str) -> tuple[str, ...]:
    """Returns the names, numbers, images and times in a text, each once, in their order."""
    text = _GROUPED.sub("", _MASKED.sub(" ", claim))
    tokens = [match[0].strip(".:/@%+-") for match in _TOKEN.finditer(text)]
    found: dict[str, None] = {}
    for place, token in enumerate(tokens):
        if token and len(token) <= LONGEST and (_has_shape(token) or _is_named(tokens, place)):
            found[token] = None
    return tuple(found)


def _hyphenated(text: str) -> set[str]:
    """Returns the words of a text that have a hyphen and no other shape of an entity."""
    tokens = {match[0].strip(".:/@%+-").lower() for match in _TOKEN.finditer(text)}
    return {token for token in tokens if "-" in token and len(token) <= LONGEST and not _has_shape(token)}


def _has_shape(token: str) -> bool:
    if token.lower() in _ABBREVIATIONS:
        return False
    return any(char.isdigit() or char in "_./:@" for char in token)


def _is_named(tokens: list[str], place: int) -> bool:
    """Returns whether a hyphenated word stands beside the kind of an object, and so is the object's name."""
    if "-" not in tokens[place]:
        return False
    beside = tokens[max(0, place - 1) : place] + tokens[place + 1 : place + 2]
    return any(word.lower() in _KINDS or word.lower().removesuffix("s") in _KINDS for word in beside)


def _occurs(entity: str, text: str) -> bool:
    if _found(entity, text):
        return True
    if number := _NUMBER.fullmatch(entity):
        return _found(number[1], text)
    parts = [part for part in _PARTS.split(entity) if part]
    return len(parts) > 1 and all(_occurs(part, text) for part in parts)


def _found(entity: str, text: str) -> bool:
    """Returns whether an entity stands in a text with no digit beside its digits, and no letter beside its letters."""
    before = r"(?<![\d])(?<!\d\.)" if entity[0].isdigit() else r"(?<![a-z0-9_])"
    after = r"(?!\d)(?!\.\d)" if entity[-1].isdigit() else r"(?![a-z0-9_])"
    return re.search(before + re.escape(entity) + after, text) is not None
