"""Converts a conversation and its tools into Gemini's request.

Gemini 3 refuses (400) a function call without a thought signature, so calls that another model made, before a
fallback, carry the marker that its documentation gives for this. The results of one turn go back in one content,
under the names and ids that Gemini itself gave to the calls.
"""

import json
from collections.abc import Mapping
from typing import Any

from google.genai import types

from tarsy.llm.google_native.names import spell
from tarsy.llm.google_native.state import GeminiTurn, replay_parts
from tarsy.llm.protocol import GenerateRequest
from tarsy.llm.stop_reasons import stops
from tarsy.llm.text import encodable
from tarsy.llm.toolcalls import sendable_arguments
from tarsy.plan import gemini
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types import provider_type
from tarsy.record.messages import Message, Role, ToolDefinition

_FOREIGN = b"skip_thought_signature_validator"


class _Contents:
    """The contents of a conversation, and after each of its messages their number and the calls of the last turn."""

    def __init__(self) -> None:
        self.made: list[types.Content] = []
        self._after: list[tuple[int, Mapping[str, tuple[str | None, str]]]] = []

    def keep(self, count: int) -> int:
        """Keeps what was made of the first `count` messages at most; returns of how many it is."""
        del self._after[count:]
        del self.made[self._after[-1][0] if self._after else 0 :]
        return len(self._after)

    def add(self, message: Message, model: str, *, after_tool: bool) -> None:
        """Adds the next message; `after_tool`: the one before it is the result of a tool call."""
        calls = self._after[-1][1] if self._after else {}
        match message.role:
            case Role.SYSTEM:
                pass
            case Role.USER:
                parts = [types.Part(text=encodable(message.content) or " ")]
                self.made.append(types.Content(role="user", parts=parts))
            case Role.ASSISTANT:
                turn = replay_parts(message, model) or _written(message, model)
                calls = turn.calls
                if turn.parts:
                    self.made.append(types.Content(role="model", parts=turn.parts))
            case Role.TOOL:
                part = _result(message, calls)
                if after_tool and self.made[-1].parts is not None:
                    self.made[-1].parts.append(part)
                else:
                    self.made.append(types.Content(role="user", parts=[part]))
        self._after.append((len(self.made), calls))


def contents_of(request: GenerateRequest, model: str) -> list[types.Content]:
    """All but the system messages, in their order; each is made once a conversation."""
    messages = request.messages
    contents, held = request.forms.of(("google-native", model), messages, _Contents)
    for place in range(contents.keep(held), len(messages)):
        after_tool = place > 0 and messages[place - 1].role is Role.TOOL
        contents.add(messages[place], model, after_tool=after_tool)
    return list(contents.made)


def config_of(request: GenerateRequest, provider: ProviderPlan) -> types.GenerateContentConfig:
    """Instructions, tools and settings of a request."""
    system = "\n\n".join(encodable(m.content) for m in request.messages if m.role is Role.SYSTEM and m.content)
    native = native_of(request, provider)
    tools = [_NATIVE[name]() for name in native]
    if request.tools:
        tools.append(types.Tool(function_declarations=[declaration(tool) for tool in request.tools]))
    both = bool(native and request.tools)
    return types.GenerateContentConfig(
        system_instruction=system or None,
        temperature=provider.temperature,
        max_output_tokens=provider.max_output_tokens,
        tools=tools or None,
        tool_config=types.ToolConfig(include_server_side_tool_invocations=True) if both else choice_of(request),
        stop_sequences=list(request.stop) if request.stop and stops(provider) else None,
        thinking_config=thinking_of(provider),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


def choice_of(request: GenerateRequest) -> types.ToolConfig | None:
    """Forbids calls of the tools that go with a request; None where they may be called."""
    if request.may_call or not request.tools:
        return None
    none = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.NONE)
    return types.ToolConfig(function_calling_config=none)


def native_of(request: GenerateRequest, provider: ProviderPlan) -> tuple[str, ...]:
    """The native tools that go with a request: none beside function tools where the model cannot have both."""
    if request.tools and not provider_type(provider.type).combines_tools(provider.model):
        return ()
    return request.native_tools


_NATIVE = {
    "google_search": lambda: types.Tool(google_search=types.GoogleSearch()),
    "code_execution": lambda: types.Tool(code_execution=types.ToolCodeExecution()),
    "url_context": lambda: types.Tool(url_context=types.UrlContext()),
}


def thinking_of(provider: ProviderPlan) -> types.ThinkingConfig | None:
    """Returns the thinking settings: the provider's, else the default of the model's generation."""
    wish, model = provider.thinking, provider.model
    if wish is not None and wish.budget is not None:
        return types.ThinkingConfig(include_thoughts=wish.budget != 0, thinking_budget=wish.budget)
    if wish is not None and wish.level is not None:
        return types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel(wish.level.upper()))
    if gemini.thinks_by_level(model):
        return types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.HIGH)
    if (budget := gemini.default_budget(model)) is not None:
        return types.ThinkingConfig(include_thoughts=True, thinking_budget=budget)
    return None


def declaration(tool: ToolDefinition) -> types.FunctionDeclaration:
    """A tool, its schema untouched."""
    return types.FunctionDeclaration(
        name=spell(tool.name),
        description=tool.description,
        parameters_json_schema={"type": "object", "properties": {}, **tool.parameters_schema},
    )


def _written(message: Message, model: str) -> GeminiTurn:
    """An assistant message that this model did not write, or not so."""
    parts = [types.Part(text=encodable(message.content))] if message.content else []
    calls: dict[str, tuple[str | None, str]] = {}
    for place, call in enumerate(message.tool_calls):
        name, arguments = spell(call.name), json.loads(sendable_arguments(call.arguments))
        part = types.Part(function_call=types.FunctionCall(id=call.id, name=name, args=arguments))
        if place == 0 and gemini.signs_calls(model):
            part.thought_signature = _FOREIGN
        parts.append(part)
        calls[call.id] = (call.id, name)
    return GeminiTurn(parts, calls)


def _result(message: Message, calls: Mapping[str, tuple[str | None, str]]) -> types.Part:
    own = message.tool_call_id or ""
    identifier, name = calls.get(own, (own, spell(message.tool_name or "tool")))
    response: dict[str, Any] = {"output": encodable(message.content)}
    return types.Part(function_response=types.FunctionResponse(id=identifier, name=name, response=response))
