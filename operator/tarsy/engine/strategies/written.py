"""Reads tool calls that a model wrote into its text instead of making them.

Small and local models, and servers without a parser for their model, leave calls in the text. Read are the forms that
models are trained on: JSON with a name and arguments, alone or in a code fence, `<tool_call>` and its like (Hermes,
Qwen), `<function=NAME>` (Llama, Qwen Coder), `<|python_tag|>` (Llama) and `[TOOL_CALLS]` (Mistral).

Decision: only what ends the text counts, and everything from the first call on must be calls. Bare JSON must be the
whole text. A call in the middle of prose, or one with prose after it, may be a quotation. Whether a name is a tool, and
whether the text repeats what the model was shown, is for the caller to check (`tarsy.engine.model_calls.text_calls`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.mcp.arguments.scalars import coerce

MOST_CALLS = 16
"""Calls in one text; a text with more is no call."""

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "tool_input", "action_input", "input")
_BESIDE = frozenset({"id", "type", "call_id", "tool_call_id", "index"})
_ENDS = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|endoftext|>", "</s>")
_OPENING = re.compile(
    r"^[ \t]*(?:<(?P<tag>tool_calls?|function_calls?|functioncall)>|(?P<function><function=)"
    r"|(?P<python><\|python_tag\|>)|(?P<mistral>\[TOOL_CALLS\]))",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"\s*<function=\s*([\w.:/-]{1,200})\s*>")
# A run of blanks is read once, from its first one on.
_PARAMETER = re.compile(r"(?<!\s)\s*+<parameter=\s*+([\w.-]{1,100})\s*+>(.*?)</parameter>", re.DOTALL)
_PARAMETER_END = "</parameter>"
_MISTRAL = re.compile(r"\s*(?:\[TOOL_CALLS\])?\s*([\w.:/-]{1,200})\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*(?=\{)")
_FENCE = re.compile(r"^[ \t]*+```[ \t]*+([\w-]*+)[ \t]*+$", re.MULTILINE)
_BLANK = re.compile(r"[\s;,]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """One call: the tool's name as written, its arguments as JSON or as the text that the model gave for them."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Written:
    """The calls at the end of a text, the text before them, and the text that they were read from."""

    calls: tuple[WrittenCall, ...]
    before: str
    source: str


class _NoCall(Exception):
    """The text is not made of calls."""


def read_written(text: str) -> Written | None:
    """The calls that end a text; None where it ends in none. Never raises, and takes time linear in the text."""
    text = _ended(text)
    try:
        return _whole(text) or _tagged(text) or _fenced(text)
    except (_NoCall, ValueError, RecursionError):
        return None


def _ended(text: str) -> str:
    """Returns a text without the marks of its end, and the blanks around them."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in _ENDS if text.endswith(mark, 0, end)), None)
        if mark is None:
            return text[:end]
        end -= len(mark)


def _made(calls: list[WrittenCall], before: str, source: str) -> Written | None:
    return Written(tuple(calls), before.rstrip(), source) if 0 < len(calls) <= MOST_CALLS else None


def _whole(text: str) -> Written | None:
    """A text that is nothing but JSON, after the thinking that some servers leave in front."""
    start = text.rfind("</think>") + len("</think>") if "</think>" in text else 0
    body = text[start:].strip()
    if not body.startswith(("{", "[")) or body.startswith("[TOOL_CALLS]"):
        return None
    return _made(list(_values(body)), text[:start], body)


def _tagged(text: str) -> Written | None:
    """A text from its first line that opens a call, to its end."""
    found = _OPENING.search(text)
    if found is None or text[: found.start()].count("```") % 2:
        return None
    source = text[found.start() :]
    return _made(list(_tags(source)), text[: found.start()], source)


def _fenced(text: str) -> Written | None:
    """The code blocks that end a text, one after the other, as far as they are calls."""
    if not text.endswith("```"):
        return None
    marks = list(_FENCE.finditer(text))
    calls: list[WrittenCall] = []
    start = len(text)
    for opened, closed in zip(marks[-2::-2], marks[:0:-2], strict=False):
        if text[closed.end() : start].strip() or closed[1]:
            break
        body = text[opened.end() : closed.start()].strip()
        try:
            found = list(_tags(body) if _OPENING.match(body) else _values(body))
        except (_NoCall, ValueError):
            break
        calls, start = [*found, *calls], opened.start()
        if len(calls) > MOST_CALLS:
            break
    return _made(calls, text[:start], text[start:])


def _tags(text: str) -> Iterator[WrittenCall]:
    place = 0
    while place < len(text):
        found = _OPENING.match(text, place)
        if found is None:
            raise _NoCall
        if found["tag"]:
            body, place = _until(text, found.end(), f"</{found['tag']}>")
            yield from _functions(body) if _FUNCTION.match(body) else _values(body)
        elif found["function"]:
            body, place = _until(text, found.start(), "</function>")
            yield from _functions(body)
        elif found["python"]:
            body, place = text[found.end() :], len(text)
            yield from _values(body)
        else:
            yield from _mistral(text[found.start() :])
            place = len(text)
        place = _past_blank(text, place)


def _until(text: str, start: int, closing: str) -> tuple[str, int]:
    """The text up to `closing`, or to the end where a server swallowed that as a stop, and the place after it."""
    end = text.find(closing, start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + len(closing))


def _functions(text: str) -> Iterator[WrittenCall]:
    """Calls as `<function=NAME>`, their arguments as one JSON object or as `<parameter=KEY>` each."""
    place = 0
    while place < len(text):
        found = _FUNCTION.match(text, place)
        if found is None:
            raise _NoCall
        body, place = _until(text, found.end(), "</function>")
        if "<parameter=" in body:
            last = body.rfind(_PARAMETER_END) + len(_PARAMETER_END)  # none behind it has an end to look for
            pairs = list(_PARAMETER.finditer(body, 0, last))
            if (_PARAMETER.sub("", body[:last]) + body[last:]).strip():
                raise _NoCall
            yield WrittenCall(found[1], _json({pair[1]: coerce(pair[2]) for pair in pairs}))
        else:
            yield WrittenCall(found[1], _json(_arguments(_DECODER.decode(body.strip() or "{}"))))
        place = _past_blank(text, place)


def _mistral(text: str) -> Iterator[WrittenCall]:
    body = text.strip().removeprefix("[TOOL_CALLS]").lstrip()
    if body.startswith("["):
        yield from _values(body)
        return
    place = 0
    while place < len(body):
        found = _MISTRAL.match(body, place)
        if found is None:
            raise _NoCall
        value, place = _DECODER.raw_decode(body, found.end())
        yield WrittenCall(found[1], _json(_arguments(value)))
        place = _past_blank(body, place)


def _values(text: str) -> Iterator[WrittenCall]:
    """Calls as JSON values, one after the other."""
    place = _past_blank(text, 0)
    while place < len(text):
        value, place = _DECODER.raw_decode(text, place)
        yield from _calls(value)
        place = _past_blank(text, place)


def _calls(value: Any) -> Iterator[WrittenCall]:
    if isinstance(value, list) and value:
        for item in value:
            yield from _calls(item)
    elif not isinstance(value, dict):
        raise _NoCall
    elif isinstance(value.get("tool_calls"), list) and len(value) == 1:
        yield from _calls(value["tool_calls"])
    elif isinstance(value.get("function"), dict) and value.keys() <= _BESIDE | {"function"}:
        yield from _calls(value["function"])
    else:
        yield _call(value)


def _call(value: Mapping[str, Any]) -> WrittenCall:
    """The call of one object: a name and arguments, and nothing that a call does not have."""
    named = [key for key in _NAMES if isinstance(value.get(key), str)]
    given = [key for key in _ARGUMENTS if key in value]
    if len(named) != 1 or len(given) != 1 or value.keys() - _BESIDE != {named[0], given[0]}:
        raise _NoCall
    arguments = value[given[0]]
    text = arguments if isinstance(arguments, str) else _json(_arguments(arguments))
    return WrittenCall(value[named[0]].strip(), text)


def _arguments(value: Any) -> dict[str, Any]:
    """Arguments that are an object; the schema of a tool that a model repeats is none."""
    if value is None:
        return {}
    if not isinstance(value, dict) or (value.get("type") == "object" and isinstance(value.get("properties"), dict)):
        raise _NoCall
    return value


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _past_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place
