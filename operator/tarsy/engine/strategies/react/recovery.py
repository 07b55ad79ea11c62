"""Finds the Action of an Action Input that seems to have none.

Only its own line may be odd (`... so: Action k8s.get`, `Action` without a colon, no new line before it); the tool must
be there and well-formed, or the answer stays malformed.
"""

import re
from dataclasses import dataclass

from tarsy.engine.strategies.react.names import ToolIndex, clean_name

_MARKED = re.compile(r"(?<!\w)action[`*_]*[ \t]*[:：]", re.I)
_WORD = re.compile(r"\bAction\b")
_TOOL = re.compile(r"[\w-]+\.[\w-]+")
_FARTHEST = 4000


@dataclass(frozen=True, slots=True)
class Recovered:
    """The tool's name, and where the Action begins."""

    name: str
    start: int


def recover(before: str, tools: ToolIndex) -> Recovered | None:
    """Looks backwards from an Action Input; `before` is the text in front of it."""
    offset = max(0, len(before) - _FARTHEST)
    near = before[offset:]
    for pattern in (_MARKED, _WORD):
        matches = list(pattern.finditer(near))
        if matches:
            last = matches[-1]
            lines = near[last.end() :].strip(" \t\n*_`#>:").splitlines()
            name = clean_name(lines[0]) if lines else ""
            if _TOOL.fullmatch(name) or (name and tools.resolve(name, forgiving=False).tool is not None):
                return Recovered(name, offset + len(near[: last.start()].rstrip(" \t*_`#>")))
            return None
    return None
