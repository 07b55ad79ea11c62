"""Resolves the tool name that a model wrote to a tool that exists.

Exact first, then what providers and models do to names (`functions.k8s.get_pods`, `server.k8s.get_pods`,
`k8s__get_pods`, `K8s.GetPods`, a missing server), then one slip of the pen. A reading counts only when exactly one tool
has it. A server that was named is never exchanged for another, digits are never forgiven, and neither is the first
letter of a word: `prod-1` is not `prod-2`, and `set_quota` is not `get_quota`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tarsy.llm import ToolDefinition
from tarsy.llm.tool_names import encode_tool_name
from tarsy.mcp.arguments.plain_names import plain_name

_LONGEST = 200
_WRAPPERS = re.compile(r"^(?:(?:functions?|tools?|servers?|default_api|multi_tool_use|mcp)(?:\.|__|::|/|:))+", re.I)
_WRAPPING = " \t\r\n\"'`*_<>[](){}“”‘’«»"
_NAME = re.compile(r"[\w-]+(?:\.[\w/:-]+)+|[\w-]+__[\w/:-]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
WELL_FORMED = re.compile(r"[\w-]+(?:\.[\w/:-]+)+")


@dataclass(frozen=True, slots=True)
class Resolved:
    """`tool` is the definition found, `name` what to call it; `near` are the candidates where several fit."""

    name: str
    known: bool = False
    tool: ToolDefinition | None = None
    near: tuple[str, ...] = ()


def clean_name(written: str) -> str:
    """A name without quotes, emphasis and closing punctuation."""
    name = written.strip(_WRAPPING)
    while name and (name[-1] in ",;:!?" or (name[-1] == "." and "." in name[:-1])):
        name = name[:-1].strip(_WRAPPING)
    return name


def is_halved(name: str) -> bool:
    """Whether one side of the first dot is empty."""
    server, dot, tool = name.partition(".")
    return bool(dot) and not (server.strip() and tool.strip())


class ToolIndex:
    """The tools of an agent, ready to be looked up; without any, every well-formed `server.tool` is one."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @cached_property
    def _encoded(self) -> dict[str, list[str]]:
        """By the name a provider knows."""
        return _index((encode_tool_name(name), name) for name in self._tools)

    @cached_property
    def _plain(self) -> dict[str, list[str]]:
        """By the bare letters of the name."""
        return _index((plain_name(name), name) for name in self._tools)

    @cached_property
    def _short(self) -> dict[str, list[str]]:
        """By the bare letters of the name without its server."""
        return _index((plain_name(name.partition(".")[2]), name) for name in self._tools)

    def resolve(self, written: str, *, forgiving: bool = True) -> Resolved:
        """The tool that `written` names; `forgiving` looks for slips of the pen too."""
        written = written.strip()[:_LONGEST]
        if written in self._tools:
            return Resolved(written, True, self._tools[written])
        name = clean_name(written)
        candidates = dict.fromkeys([name, _WRAPPERS.sub("", name), *_first_words(name)])
        if not self._tools:
            return _without_tools(name, candidates)
        for candidate in candidates:
            if found := self._lookup(candidate):
                return found if len(found.near) != 1 else Resolved(found.near[0], True, self._tools[found.near[0]])
        mentioned = {hit for word in _NAME.findall(written) for hit in self._exact(word)}
        if len(mentioned) == 1:
            (hit,) = mentioned
            return Resolved(hit, True, self._tools[hit])
        if forgiving and (slips := [tool for tool in self._tools if _is_slip(candidates, tool)]):
            if len(slips) == 1:
                return Resolved(slips[0], True, self._tools[slips[0]])
            return Resolved(name, near=tuple(slips))
        return Resolved(name)

    def _exact(self, name: str) -> list[str]:
        return [name] if name in self._tools else self._encoded.get(name, [])

    def _lookup(self, name: str) -> Resolved | None:
        """The first reading of `name` that any tool has; it is found when one tool has it."""
        readings = [self._exact(name), self._plain.get(plain_name(name), [])]
        if not WELL_FORMED.fullmatch(name):
            readings.append(self._short.get(plain_name(name), []))
        for hits in readings:
            if hits:
                return Resolved(name, near=tuple(hits))
        return None


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        if key:
            found.setdefault(key, []).append(name)
    return found


def _first_words(name: str) -> list[str]:
    """The name in front of prose: `k8s.get_pods to list them`."""
    first = name.split(maxsplit=1)[0] if name else ""
    return [clean_name(first), _WRAPPERS.sub("", clean_name(first))] if _NAME.fullmatch(clean_name(first)) else []


def _without_tools(name: str, candidates: Iterable[str]) -> Resolved:
    for candidate in reversed(list(candidates)):
        readable = candidate if "." in candidate else candidate.replace("__", ".", 1)
        if WELL_FORMED.fullmatch(readable):
            return Resolved(readable, True)
    return Resolved(name)


def _is_slip(written: Iterable[str], tool: str) -> bool:
    words = _words(tool)
    server, _, short = tool.partition(".")
    for name in written:
        named, dot, rest = name.replace("__", ".", 1).partition(".") if "." not in name else name.partition(".")
        if dot and plain_name(named) == plain_name(server) and _near(_words(rest), _words(short)):
            return True
        if not dot and (_near(_words(name), words) or _near(_words(name), _words(short))):
            return True
    return False


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(name)]


def _near(left: list[str], right: list[str]) -> bool:
    """Whether two names differ in one word, and that by one letter."""
    if len(left) != len(right):
        return False
    differing = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    return len(differing) == 1 and _one_letter(*differing[0])


def _one_letter(left: str, right: str) -> bool:
    """Whether one letter, not the first, was changed, lost, doubled or swapped with its neighbour."""
    if len(left) > len(right):
        left, right = right, left
    if len(right) < 4 or len(right) - len(left) > 1 or left[0] != right[0] or right.isdigit():
        return False
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left))
    if len(left) != len(right):
        return left[at:] == right[at + 1 :]
    swapped = left[:at] + left[at : at + 2][::-1] + left[at + 2 :]
    return left[at + 1 :] == right[at + 1 :] or swapped == right
