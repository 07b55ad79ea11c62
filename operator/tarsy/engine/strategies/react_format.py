"""Implements the ReAct format of tool calls: calls are parsed from text, results are sent as observations.

Proper roles: the model's text is an assistant message, an observation a user message; no tool is bound and
no tool message exists. An answer is read again whenever the position is asked for; reading is pure, so an attempt that
resumes reads what the one that died has read. Observations carry the id of their call, for citations.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from tarsy.engine.conversation.state import (
    CallModel,
    CallTool,
    CallTools,
    Conversation,
    ConversationTurn,
    Finish,
    Stop,
    ask_model,
    tell_repetition,
)
from tarsy.engine.findings.conclusion import read_finding
from tarsy.engine.model_calls.events import response_event, thought_event, unusable_event
from tarsy.engine.prompts.example import example_call
from tarsy.engine.prompts.react import react_conclusion_message, react_section
from tarsy.engine.prompts.results import observation_text
from tarsy.engine.prompts.template import template
from tarsy.engine.strategies.react import Kind, Parsed, parse_react
from tarsy.record.ids import call_ref, idempotency_key
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition, ToolOutcome
from tarsy.record.run import ModelCallKind
from tarsy.record.timeline import Event, EventStatus, EventType

_THOUGHT = re.compile(r"\A\s*[*_]*thought[*_]*:[*_]*[ \t]*", re.I)


class ReactCalls:
    """Reads tool calls from text in the form of ReAct (`tarsy.engine.strategies.tool_call_format.ToolCallFormat`).

    Args:
        tools: the tools of this attempt; names are resolved against them.
        refused: whether a name is that of a tool which is there and not for this agent: a call, to be refused as one.
    """

    def __init__(self, tools: Sequence[ToolDefinition], refused: Callable[[str], bool] = lambda _: False) -> None:
        self._tools = tuple(tools)
        self._refused = refused

    name = "react"
    functions = False
    stop = ("\nObservation:",)

    @property
    def sections(self) -> Sequence[str]:
        """The form of an answer, and the tools: they are not bound to the call."""
        return (react_section(self._tools),)

    @property
    def change_note(self) -> str:
        """Explains the form to a model that goes on with a conversation of function calls."""
        return template("change_to_react").substitute(react=react_section(self._tools))

    @property
    def how(self) -> str:
        """With the form of a call, for a tool that the agent has."""
        example = example_call(self._tools)
        return f"Call one in this form:\n\n{example}\n" if example else ""

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, stop: Stop | None, max_iterations: int | None
    ) -> ConversationTurn:
        """Returns the next step, from the text of the last answer.

        Args:
            conversation: as on record.
            opening: the messages a new conversation starts with.
            stop: why the agent must conclude now, if it must.
            max_iterations: model calls after which a conclusion is forced.
        """
        turn = self._next(conversation, opening)
        if isinstance(turn, CallModel):
            return self.ask(conversation, turn, stop=stop, max_iterations=max_iterations)
        return turn

    def ask(
        self, conversation: Conversation, turn: CallModel, *, stop: Stop | None, max_iterations: int | None
    ) -> CallModel:
        """Returns the model call of a turn, made a forced conclusion in this form where it is time to conclude.

        Args:
            conversation: as on record.
            turn: the call that would be made otherwise.
            stop: why the agent must conclude now, if it must.
            max_iterations: model calls after which a conclusion is forced.
        """
        return ask_model(conversation, turn, stop, max_iterations, react_conclusion_message)

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """None: they are described in the system message."""
        return ()

    def tell(self, turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
        """Makes the observation with the `outcome` of the call in `turn`, which the model cites as `ref`."""
        return Message(Role.USER, observation_text(ref, turn.call.name, outcome))

    def read(self, conversation: Conversation, call: UUID, text: str) -> list[Event]:
        """Makes the events of an answer: a thought, then a final answer or an error; the raw text is no event.

        Args:
            conversation: conversation of the agent; its loop state shows whether the answer must be a conclusion.
            call: id of the model call.
            text: complete text of the answer.
        """
        parsed = self._parse(text)
        answer = _conclusion(parsed, text) if conversation.loop.concluding else parsed.final_answer
        events = []
        if parsed.thought and parsed.thought != answer:
            events.append(thought_event(conversation, call, parsed.thought))
        if answer.strip():
            status, kind = EventStatus.COMPLETED, EventType.FINAL_ANALYSIS
            events.append(response_event(conversation, call, answer, status, kind))
        elif parsed.kind is Kind.UNKNOWN_TOOL:
            events.append(unusable_event(conversation, call, _first_line(parsed.feedback), "UnknownTool"))
        elif parsed.kind is Kind.MALFORMED and text.strip() and conversation.loop.awaits_results:
            status, kind = EventStatus.COMPLETED, EventType.LLM_RESPONSE
            events.append(response_event(conversation, call, text, status, kind))
        elif parsed.kind is Kind.MALFORMED and text.strip():
            events.append(unusable_event(conversation, call, _first_line(parsed.feedback), "MalformedAnswer"))
        return events

    def _next(self, conversation: Conversation, opening: Sequence[Message]) -> ConversationTurn:
        messages, loop = conversation.messages, conversation.loop
        if not messages:
            return CallModel(ModelCallKind.ITERATION, tuple(opening), loop)
        last = messages[-1]
        if last.role is not Role.ASSISTANT:
            return CallModel(ModelCallKind.ITERATION, (), loop)
        if not last.content.strip() and loop.empty_answers > conversation.limits.empty_answers:
            return Finish("")
        if tells := tell_repetition(conversation, tools=not loop.concluding):
            return tells
        parsed = self._parse(last.content)
        if last.content.strip() and (loop.concluding or loop.repeated_answers):
            return Finish(_conclusion(parsed, last.content))
        match parsed.kind:
            case Kind.FINAL_ANSWER:
                return Finish(parsed.final_answer)
            case Kind.TOOL_CALL:
                return CallTools((self._call(conversation, len(messages) - 1, parsed),))
            case Kind.UNKNOWN_TOOL:
                feedback = f"Observation: Error - {parsed.feedback}"
            case Kind.MALFORMED if last.content.strip() and loop.awaits_results:
                return Finish(last.content)  # it waits for its sub-agents
            case Kind.MALFORMED:
                feedback = parsed.feedback
        return CallModel(ModelCallKind.ITERATION, (Message(Role.USER, feedback),), loop)

    def _call(self, conversation: Conversation, seq: int, parsed: Parsed) -> CallTool:
        """The call, named after its place in the run: the same whoever reads it."""
        identity = call_ref(idempotency_key(conversation.execution, seq, 0))
        call = ToolCall(identity, parsed.tool, _json(parsed))
        if (written := conversation.as_written(seq)) is None:
            return CallTool(seq, 0, call)
        unmasked = self._parse(written.content)
        same = unmasked.kind is Kind.TOOL_CALL and unmasked.tool == parsed.tool
        return CallTool(seq, 0, call, _json(unmasked) if same else None)

    def _parse(self, text: str) -> Parsed:
        """Reads an answer. Without any tool every call is of an unknown one, which `parse` cannot know."""
        parsed = parse_react(text, self._tools)
        if parsed.kind is Kind.MALFORMED and (answer := _bare_finding(text)):
            return replace(parsed, kind=Kind.FINAL_ANSWER, thought="", final_answer=answer, feedback="")
        if parsed.kind in (Kind.UNKNOWN_TOOL, Kind.TOOL_CALL) and self._refused(parsed.tool):
            return replace(parsed, kind=Kind.TOOL_CALL, feedback="")
        if parsed.kind is Kind.TOOL_CALL and not self._tools:
            feedback = f"Unknown tool '{parsed.tool}'. No tools are currently available."
            return Parsed(Kind.UNKNOWN_TOOL, parsed.thought, parsed.tool, parsed.arguments, feedback=feedback)
        return parsed


def _json(parsed: Parsed) -> str:
    return json.dumps(parsed.arguments, ensure_ascii=False)


def _bare_finding(text: str) -> str:
    """An answer that has a finding and no header but perhaps that of a thought; empty when it has no finding."""
    return _THOUGHT.sub("", text, count=1).strip() if read_finding(text)[0].structured else ""


def _conclusion(parsed: Parsed, text: str) -> str:
    """The conclusion of a model that had to conclude, in whatever form it gave it."""
    return parsed.final_answer.strip() or parsed.thought.strip() or text.strip()


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
