"""Assembles tool calls from the pieces of a stream, and prepares their arguments for the next request.

Compatible servers disagree about how: most number the calls, some number every call 0 and give each a new id, some
give no id at all, some repeat the name in every piece. A call keeps the id its server gave it; one without a usable
id gets an id that depends only on the conversation and the call's place, so that a repeated call is the same call.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field

from tarsy.llm.text import encodable
from tarsy.llm.tool_names import ToolNames
from tarsy.record.messages import ToolCall

MAX_TOOL_CALLS = 256
_USABLE_ID = re.compile(r"[!-~]{1,128}")


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ToolCallAssembler:
    """Collects the pieces of one answer.

    Args:
        names: the names the request used, to read the model's.
        salt: what made ids start from: the same salt and the same answer give the same ids.
    """

    def __init__(self, names: ToolNames, salt: str) -> None:
        self._names = names
        self._salt = salt
        self._calls: list[_Call] = []

    def add(self, *, index: int | None, id: str | None, name: str | None, arguments: str | None) -> None:
        """Adds one piece of a call.

        Args:
            index: position of the call in the response; None where the server sends none.
            id: of the call; None or empty in later pieces.
            name: of the tool; None or empty in later pieces.
            arguments: the next characters of its arguments.
        """
        call = self._call(index, id or "", name or "")
        if name and name != call.name:
            call.name += name
        if arguments:
            call.arguments.append(arguments)

    @property
    def count(self) -> int:
        """Number of calls that have begun."""
        return len(self._calls)

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they began."""
        taken: set[str] = set()
        made: list[ToolCall] = []
        for place, call in enumerate(self._calls):
            identifier = call.id
            if not _USABLE_ID.fullmatch(identifier) or identifier in taken:
                source = json.dumps([self._salt, place, call.name])
                identifier = f"call_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
            taken.add(identifier)
            made.append(ToolCall(identifier, self._names.decode(call.name), encodable("".join(call.arguments))))
        return tuple(made)

    def _call(self, index: int | None, id: str, name: str) -> _Call:
        if index is None:
            last = self._calls[-1] if self._calls else None
            begins = last is None or (id != last.id if id else bool(name))
            current = None if begins else last
        else:
            current = next((call for call in reversed(self._calls) if call.index == index), None)
            if current is not None and id and current.id and id != current.id:
                current = None
        if current is None:
            current = _Call(index, id)
            self._calls.append(current)
        elif id and not current.id:
            current.id = id
        return current


def sendable_arguments(text: str) -> str:
    """The arguments as the model wrote them, if they are a JSON object.

    Servers with chat templates parse them and refuse the conversation otherwise, so anything else is wrapped: the
    model still sees what it wrote.
    """
    text = encodable(text)
    try:
        parsed = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        parsed = None
    if parsed == {}:
        return "{}"
    return text if isinstance(parsed, dict) else json.dumps({"malformed_arguments": text}, ensure_ascii=False)
