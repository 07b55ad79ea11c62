"""Parses the script: the answers of each agent's model, written in YAML.

An answer is chosen by the turn (the number of assistant messages in the conversation), not by counting requests: the
server keeps no state, so a call that is made again after a crash gets the same answer.
"""

from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator


class ScriptError(Exception):
    """A script cannot be read; the text names each wrong field by its path."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Part):
    """One tool call. `name` is `server.tool`; `arguments` is a mapping, or text that is sent as it is."""

    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class ScriptedUsage(_Part):
    """Tokens to bill instead of counted ones."""

    prompt_tokens: Annotated[int, Field(ge=0)] | None = None
    completion_tokens: Annotated[int, Field(ge=0)] | None = None
    reasoning_tokens: Annotated[int, Field(ge=0)] = 0
    cached_tokens: Annotated[int, Field(ge=0)] = 0


class ScriptedFault(_Part):
    """A fault and its time: `after` this number of chunks (None: instead of the answer).

    `times` limits it to the first so many requests for the entry; later ones are answered properly.
    """

    after: Annotated[int, Field(ge=0)] | None = None
    times: Annotated[int, Field(ge=1)] | None = None


class ErrorFault(ScriptedFault):
    """An error response; with `after`, an error event in the middle of a stream."""

    status: Annotated[int, Field(ge=400, le=599)] = 500
    message: str = "scripted error"
    code: str | None = None
    body: dict[str, Any] | str | None = None
    headers: dict[str, str] = Field(default_factory=dict)


def _flag(value: Any) -> Any:
    return {} if value is True else value


class Entry(_Part):
    """One answer: thinking, text, tool calls, in this order, and how it is delivered.

    `tokens` splits the text into so many chunks (without text: filler of different words); otherwise a chunk is a word.
    `gate` holds the answer back until the gate is opened. Delays are in milliseconds.
    """

    text: str | None = None
    thinking: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    finish_reason: Literal["stop", "tool_calls", "length", "content_filter"] | None = None
    usage: ScriptedUsage = ScriptedUsage()
    first_token_ms: Annotated[float, Field(ge=0)] | None = None
    per_token_ms: Annotated[float, Field(ge=0)] | None = None
    gate: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")] | None = None
    error: Annotated[ErrorFault, BeforeValidator(_flag)] | None = None
    hang: Annotated[ScriptedFault, BeforeValidator(_flag)] | None = None
    cut: Annotated[ScriptedFault, BeforeValidator(_flag)] | None = None
    malformed: Annotated[ScriptedFault, BeforeValidator(_flag)] | None = None

    @property
    def fault(self) -> ScriptedFault | None:
        """The entry's fault, if it has one."""
        return self.error or self.hang or self.cut or self.malformed

    @property
    def answers(self) -> bool:
        """Whether there is an answer besides a fault."""
        return bool(self.text is not None or self.thinking is not None or self.calls or self.tokens)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        faults = [name for name in ("error", "hang", "cut", "malformed") if getattr(self, name) is not None]
        if len(faults) > 1:
            raise ValueError(f"has {' and '.join(faults)}: keep one of them")
        if not faults and not self.answers:
            raise ValueError(
                "says nothing: give text, thinking, calls or tokens, or one of error, hang, cut, malformed"
            )
        if self.fault and not self.answers and (self.fault.times or self.fault.after):
            raise ValueError(
                f"{faults[0]} has `times` or `after`, which need an answer: give text, calls or tokens too"
            )
        return self


class Order(StrEnum):
    """Lists the ways to choose an agent's next entry: by the conversation's length, or one after the other."""

    TURN = "turn"
    ORDER = "order"


class AgentScript(_Part):
    """The answers of one agent. With `repeat: last` the last one is given for ever."""

    by: Order = Order.TURN
    repeat: Literal["last"] | None = None
    entries: Annotated[tuple[Entry, ...], Field(min_length=1)]

    def entry(self, index: int) -> tuple[int, Entry] | None:
        """The entry for a position and its number, None when the script has run out."""
        if index >= len(self.entries):
            if self.repeat is None:
                return None
            index = len(self.entries) - 1
        return index, self.entries[index]


def _entries(value: Any) -> Any:
    return {"entries": value} if isinstance(value, list) else value


class Script(_Part):
    """All answers: by agent, and those that agents without a script take one after the other.

    `first_token_ms` and `per_token_ms` are for entries that have none of their own.
    """

    model: str = "scripted"
    first_token_ms: Annotated[float, Field(ge=0)] = 0
    per_token_ms: Annotated[float, Field(ge=0)] = 0
    agents: dict[str, Annotated[AgentScript, BeforeValidator(_entries)]] = Field(default_factory=dict)
    sequential: tuple[Entry, ...] = ()


def parse_script(text: str, source: str = "script") -> Script:
    """A script from YAML text; `source` names it in errors.

    Raises ScriptError: not YAML, or with wrong fields (all of them, each with its path).
    """
    try:
        return Script.model_validate(yaml.safe_load(text) or {})
    except yaml.YAMLError as error:
        raise ScriptError(f"{source} is not YAML: {error}") from error
    except ValidationError as error:
        lines = [
            f"  {'.'.join(str(part) for part in wrong['loc']) or '(top)'}: {wrong['msg'].removeprefix('Value error, ')}"
            for wrong in error.errors()
        ]
        raise ScriptError("\n".join([f"{source} is not a model script:", *lines])) from error


def load_script(path: Path) -> Script:
    """A script from a file. Raises ScriptError: unreadable, or as `parse_script`."""
    try:
        return parse_script(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path} cannot be read: {error}") from error


def demo_script() -> Script:
    """The script of the demo's agents."""
    return scenario_script("crash-loop")


def scenario_script(scenario: str) -> Script:
    """The script of the agents of one scenario of the demo.

    Args:
        scenario: its name.
    """
    name = "demo.yaml" if scenario == "crash-loop" else f"{scenario}.yaml"
    return parse_script(files("tarsy_dev.model").joinpath(name).read_text(encoding="utf-8"), name)
