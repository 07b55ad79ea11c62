"""Reads agent, position and tools of a conversation from a request; pure functions.

The agent is named by the last line `Agent: NAME` of the first message of a user, or by one of the system message,
because the wire protocol has no field for it that every SDK passes on.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CALL = re.compile(r"\[callId: (\w+)\] (\S+)")
WANTED = re.compile(r"@callId\((?P<tool>[^()#\s]+)(?:#(?P<number>\d+))?\)")
AGENT = re.compile(r"^Agent: (\S+)[ \t]*\r?$", re.MULTILINE)


def agent_name(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the agent of the request, or None if no message names one."""
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer") and (found := AGENT.search(text_of(message))):
            return found.group(1)
        if role == "user":
            named = AGENT.findall(text_of(message))  # an alert above may hold such a line too
            return named[-1] if named else None
    return None


def turn(messages: Sequence[Mapping[str, Any]]) -> int:
    """Returns the number of answers in the conversation."""
    return sum(message.get("role") == "assistant" for message in messages)


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text, whether it is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def with_call_ids(text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """`text` with ids of calls that the conversation shows, for they exist only in a run.

    `@callId(server.tool)` is the last call of that tool whose result the request holds, `@callId(server.tool#1)` the
    first, and so on; what the request does not hold stays as it is written.
    """
    shown: dict[str, dict[str, None]] = {}
    for message in messages:
        for identity, tool in CALL.findall(text_of(message)):
            shown.setdefault(tool, {})[identity] = None

    def fill(wanted: re.Match[str]) -> str:
        ids = list(shown.get(wanted["tool"], ()))
        place = int(wanted["number"] or len(ids)) - 1
        return ids[place] if 0 <= place < len(ids) else wanted[0]

    return WANTED.sub(fill, text)


def tool_names(tools: Iterable[Any]) -> list[str]:
    """Returns the names of the functions in a request."""
    functions = (tool.get("function") for tool in tools if isinstance(tool, Mapping))
    return [str(function["name"]) for function in functions if isinstance(function, Mapping) and "name" in function]


def wire_name(name: str, offered: Sequence[str]) -> str:
    """`server.tool` in the words of the request: providers allow no dot, so it is usually `server__tool`.

    A tool that is not offered is called all the same, for models do that too.
    """
    translated = name.replace(".", "__", 1)
    return next((candidate for candidate in (name, translated) if candidate in offered), translated)


def count_tokens(messages: Sequence[Mapping[str, Any]], tools: str = "") -> int:
    """Estimates the tokens of a prompt: one per four characters."""
    characters = len(tools)
    for message in messages:
        characters += len(text_of(message)) + len(str(message.get("tool_calls") or ""))
    return max(1, characters // 4)
