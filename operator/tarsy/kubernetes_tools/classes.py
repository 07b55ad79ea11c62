"""Marks the parts of an answer that the control plane computed, so that a quote of them is evidence of class K.

Whatever is not marked can be written by workloads (class A): labels, annotations, data, termination messages, images,
commands, environment, every text that could hold a sentence, the messages of Events of other reporters, and those in
which the kubelet repeats what a container or registry said (`tarsy.evidence.authorship`). What cannot be separated is
not marked.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.types import CallToolResult, TextContent

from tarsy.evidence.authorship import is_built_in, trusts_status

INTEGRITY = "tarsy.dev/integrity"
"""Key in the `_meta` of a result: `{"K": [[start, end], ...]}`, places in its text in characters."""

MARKED_CHARACTERS = 32_000
"""Maximum characters of an answer."""

_META = frozenset(
    {"creationTimestamp", "deletionTimestamp", "generation", "name", "namespace", "resourceVersion", "uid"}
)
_FREE = frozenset(
    {
        "annotations",
        "args",
        "binaryData",
        "command",
        "data",
        "env",
        "finalizers",
        "image",
        "imageID",
        "labels",
        "managedFields",
        "matchLabels",
        "names",
        "nodeSelector",
        "selector",
        "stringData",
    }
)
_WORD = re.compile(r"[A-Za-z0-9.%]{1,63}")
_KEY = re.compile(r"[A-Za-z0-9]{1,63}")

Part = tuple[str, bool]
"""A text without the line break at its end, and whether the control plane computed it."""


@dataclass(frozen=True, slots=True)
class ClassedText:
    """A text with the spans in it that the control plane computed, each from a place to another, in order."""

    text: str
    control: tuple[tuple[int, int], ...] = ()

    def __add__(self, rest: str) -> "ClassedText":
        return ClassedText(self.text + rest, self.control)

    def limited(self, remedy: str, *, tail: bool = False) -> "ClassedText":
        """Returns the text, or its beginning (`tail`: its end) with a notice that says how to see the rest."""
        if len(self.text) <= MARKED_CHARACTERS:
            return self
        notice = f"[{MARKED_CHARACTERS} of {len(self.text)} characters shown; {remedy}]"
        if not tail:
            spans = [(start, min(end, MARKED_CHARACTERS)) for start, end in self.control if start < MARKED_CHARACTERS]
            return ClassedText(f"{self.text[:MARKED_CHARACTERS]}\n{notice}", tuple(spans))
        gone = len(self.text) - MARKED_CHARACTERS
        shift = len(notice) + 1 - gone
        spans = [(max(start, gone) + shift, end + shift) for start, end in self.control if end > gone]
        return ClassedText(f"{notice}\n{self.text[-MARKED_CHARACTERS:]}", tuple(spans))

    @property
    def answer(self) -> CallToolResult:
        """The result of a tool."""
        meta = {INTEGRITY: {"K": [list(span) for span in self.control]}}
        return CallToolResult(content=[TextContent(type="text", text=self.text)], _meta=meta)


def classed_lines(lines: Iterable[Iterable[Part]]) -> ClassedText:
    """Joins lines of parts; spans that touch, or have only a line break between them, are one."""
    texts: list[str] = []
    spans: list[tuple[int, int]] = []
    place = 0
    for number, line in enumerate(lines):
        if number:
            texts.append("\n")
            place += 1
        for text, control in line:
            end = place + len(text)
            if control and text:
                before = spans[-1] if spans else (-2, -2)
                touches = before[1] == place or (before[1] == place - 1 and texts[-1] == "\n")
                spans[-1 if touches else len(spans) :] = [(before[0] if touches else place, end)]
            texts.append(text)
            place = end
    return ClassedText("".join(texts), tuple(spans))


def vouched(text: str) -> ClassedText:
    """Marks a whole text, made of names and figures alone."""
    return ClassedText(text, ((0, len(text)),))


def classed_list(kind: str, text: str) -> ClassedText:
    """Marks a list of objects, one line each, where the control plane writes their state."""
    return vouched(text) if is_built_in(kind) else ClassedText(text)


def classed_object(item: Mapping[str, Any], *, wrote: Mapping[str, Any]) -> ClassedText:
    """Renders an object as JSON, as `json.dumps` does with `indent=1`, each line with its class.

    Args:
        item: what is shown of the object.
        wrote: the object with its managers.
    """
    trusted = trusts_status(wrote)
    return classed_lines([line] for line in _json_lines(item, (), "", "", trusted))


def _json_lines(value: object, path: tuple[str, ...], head: str, tail: str, trusted: bool) -> Iterator[Part]:
    """Yields the lines of a JSON value.

    Args:
        value: the value.
        path: its keys.
        head: what precedes it on its line.
        tail: what follows it on its line.
        trusted: whether the control plane wrote the status.
    """
    indent = " " * (len(head) - len(head.lstrip(" ")))
    if isinstance(value, Mapping) and value:
        opened, closed, entries = "{", "}", [(str(key), part) for key, part in value.items()]
    elif isinstance(value, list) and value:
        opened, closed, entries = "[", "]", [("", part) for part in value]
    else:
        leaf = json.dumps(value, ensure_ascii=False)
        yield f"{head}{leaf}{tail}", _is_control(value, path, trusted)
        return
    inside = _is_control(None, path, trusted)
    yield head + opened, inside
    for number, (key, part) in enumerate(entries):
        comma = "," if number < len(entries) - 1 else ""
        shown = f"{json.dumps(key, ensure_ascii=False)}: " if opened == "{" else ""
        below = (*path, key) if opened == "{" else path
        yield from _json_lines(part, below, f"{indent} {shown}", comma, trusted)
    yield f"{indent}{closed}{tail}", inside


def _is_control(value: object, path: tuple[str, ...], trusted: bool) -> bool:
    """Whether a line with a key, or with a key and a value, says only what the control plane wrote or checked."""
    if not path:
        return True
    if any(key in _FREE or not _KEY.fullmatch(key) for key in path):
        return False
    match path:
        case ("apiVersion" | "kind",):
            return True
        case ("metadata", "ownerReferences", *_):
            return True
        case ("metadata", *rest):
            return not rest or (len(rest) == 1 and rest[0] in _META)
        case ("status", *rest):
            said = len(rest) > 1 and rest[-2:] == ["terminated", "message"]
            return trusted and not said
        case ("spec", *_):
            return not isinstance(value, str) or _WORD.fullmatch(value) is not None
        case _:
            return False
