"""Decides what a ReAct answer asks for, from its sections.

Precedence: a tool call with its input wins over a Final Answer that follows it (the rest is imagined), a Final Answer
wins over everything after it except a call of a tool that exists. Of several calls the last complete one counts.
The text is read as it is stored, without control characters, so that reading it back from the record decides the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tarsy.engine.strategies.react import feedback
from tarsy.engine.strategies.react.calls import Call, read_call
from tarsy.engine.strategies.react.names import Resolved, ToolIndex, is_halved
from tarsy.engine.strategies.react.parsed import Kind, Parsed
from tarsy.engine.strategies.react.recovery import recover
from tarsy.engine.strategies.react.sections import Section, SectionHeader, Sections, find_sections, tidy
from tarsy.engine.strategies.react.thinking import Untangled, untangle
from tarsy.llm import ToolDefinition
from tarsy.mcp.arguments.cascade import read_arguments
from tarsy.mcp.arguments.plain_names import plain_name

_NO_TOOL = frozenset({"", "none", "na", "noaction", "nothing", "null", "noactionneeded", "noactionrequired", "finish"})
_LATE_CALLS = 20
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HALVES = re.compile("[\ud800-\udfff]")


def parse_react(text: str, tools: Sequence[ToolDefinition] = ()) -> Parsed:
    """Reads a model's answer; never raises, and takes time linear in its length.

    Args:
        text: the answer.
        tools: the tools that exist; without any, every well-formed `server.tool` counts as one.
    """
    if not isinstance(text, str) or not text.strip():
        return Parsed(Kind.MALFORMED, feedback=feedback.format_error(feedback.NOTHING, tools))
    return _Parser(_HALVES.sub("\ufffd", _CONTROL.sub("", text)), tools).parse()


@dataclass(slots=True)
class _Pair:
    """An Action and its Action Input."""

    action: Section
    call: Call
    input: str | None

    @property
    def complete(self) -> bool:
        return self.input is not None or self.call.arguments is not None


class _Parser:
    def __init__(self, text: str, tools: Sequence[ToolDefinition]) -> None:
        self._think: Untangled = untangle(text)
        self._sections: Sections = find_sections(self._think.text)
        self._tools = tools
        self._index = ToolIndex(tools)
        self._orphan: Section | None = None
        self._thought_end: int | None = None
        self._pairs = self._pair_up()
        self._answer = next((s for s in self._sections.found if s.header is SectionHeader.ANSWER), None)

    def parse(self) -> Parsed:
        pair = self._chosen()
        final = self._final_answer()
        if pair is None and not final and self._orphan is not None:
            pair = self._recovered(self._orphan)
        if pair is not None:
            parsed = self._called(pair, final)
            if parsed is not None:
                return replace(parsed, thought=self._thought(late=pair.action.late))
        if final:
            return Parsed(Kind.FINAL_ANSWER, self._thought(late=False), final_answer=final)
        return self._malformed()

    def _pair_up(self) -> list[_Pair]:
        pairs: list[_Pair] = []
        for section in self._sections.found:
            if section.header is SectionHeader.ACTION:
                if content := self._sections.content(section):
                    pairs.append(_Pair(section, read_call(content), None))
            elif section.header is SectionHeader.INPUT:
                content = self._sections.content(section)
                if pairs and (pairs[-1].action.late or not section.late):
                    if content or pairs[-1].input is None:
                        pairs[-1].input = content
                elif not section.late and (self._orphan is None or content):
                    self._orphan = section
        if len(pairs) == 1 and pairs[0].input is None and self._orphan is not None and not pairs[0].action.late:
            pairs[0].input = self._sections.content(self._orphan)
        return pairs

    def _chosen(self) -> _Pair | None:
        """The last complete call; one that stands after a Final Answer only when its tool is known."""
        complete = [pair for pair in self._pairs if pair.complete]
        late = [pair for pair in complete if pair.action.late]
        for pair in late[: -_LATE_CALLS - 1 : -1]:
            if self._index.resolve(pair.call.name, forgiving=False).known:
                return pair
        return next((pair for pair in reversed(complete) if not pair.action.late), None)

    def _final_answer(self) -> str:
        if self._answer is None:
            return ""
        answer = self._answer
        return tidy(self._sections.text[answer.begin : self._sections.stop], answer.mark, answer.quoted)

    def _recovered(self, section: Section) -> _Pair | None:
        found = recover(self._sections.text[: section.start], self._index)
        if found is None:
            return None
        self._thought_end = found.start
        action = replace(section, header=SectionHeader.ACTION, start=found.start)
        return _Pair(action, Call(found.name), self._sections.content(section))

    def _called(self, pair: _Pair, final: str) -> Parsed | None:
        """The call of a complete pair; None when it is none (`Action: None`) and there is a Final Answer."""
        name = pair.call.name
        written = pair.input or ""
        if plain_name(name) == "finalanswer":
            return Parsed(Kind.FINAL_ANSWER, final_answer=written or final) if written or final else None
        if final and not pair.action.late and plain_name(name) in _NO_TOOL:
            return None
        resolved = self._index.resolve(name)
        if resolved.known:
            return self._tool_call(pair, resolved, written)
        if is_halved(name):
            return None
        found = feedback.unknown_tool(resolved.name, resolved.near, self._tools)
        return Parsed(Kind.UNKNOWN_TOOL, tool=resolved.name, arguments=read_arguments(written, {}), feedback=found)

    def _tool_call(self, pair: _Pair, resolved: Resolved, written: str) -> Parsed:
        schema = resolved.tool.parameters_schema if resolved.tool else {}
        arguments = read_arguments(written or pair.call.arguments or "", schema)
        return Parsed(Kind.TOOL_CALL, tool=resolved.name, arguments=arguments)

    def _thought(self, *, late: bool) -> str:
        """Returns the content of `<think>` blocks, and the last Thought that is not empty."""
        parts = list(self._think.thoughts)
        found = self._sections.found
        if self._think.open_at is not None:
            end = next((s.start for s in found if s.start >= self._think.open_at), self._sections.stop)
            parts.append(self._think.text[self._think.open_at : end].strip())
        for section in reversed(found):
            if section.header is SectionHeader.THOUGHT and (late or not section.late):
                end = section.end if self._thought_end is None else min(section.end, self._thought_end)
                if words := tidy(self._think.text[section.begin : end], section.mark, section.quoted):
                    parts.append(words)
                    break
        return "\n\n".join(part for part in parts if part)

    def _malformed(self) -> Parsed:
        thought = self._thought(late=False)
        action = next((pair for pair in reversed(self._pairs) if not pair.action.late), None)
        given = self._orphan is not None or (action is not None and action.complete)
        has = {
            "Thought": bool(thought),
            "Action": action is not None,
            "Action Input": given,
            "Final Answer": False,
        }
        match (has["Thought"], has["Action"], has["Action Input"]):
            case (_, True, False):
                text = feedback.NO_INPUT
            case (_, False, True):
                text = feedback.NO_ACTION
            case (True, False, False) if self._answer is None:
                text = feedback.ONLY_THOUGHT
            case (False, False, False) if not self._sections.found:
                text = feedback.NOTHING
            case _:
                text = self._incomplete(has, action)
        return Parsed(Kind.MALFORMED, thought, feedback=feedback.format_error(text, self._tools))

    def _incomplete(self, has: dict[str, bool], action: _Pair | None) -> str:
        found = [name for name, there in has.items() if there]
        if action is not None:
            why = f"'{action.call.name}' is not the name of a tool."
            return feedback.incomplete(found, ["a tool's name"], why)
        return feedback.incomplete(found, ["either Action and Action Input, or the text of a Final Answer"])
