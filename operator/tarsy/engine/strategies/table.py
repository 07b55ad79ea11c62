"""Lists the strategies: a strategy is one row here, one in `tarsy.plan.builtin`, and a module where its format is new.

The plan's row has its backend and the kind of its work, which decide the client and whether there are native tools;
this one has its format of tool calls, which decides whether it loops.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tarsy.engine.ports import Toolbox
from tarsy.engine.strategies.function_calls import FunctionCalls
from tarsy.engine.strategies.react_format import ReactCalls
from tarsy.engine.strategies.tool_call_format import ToolCallFormat
from tarsy.plan.model import Strategy


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """The engine's part of a strategy.

    `tool_calls` makes the format of its tool calls for the tools of an agent; None for a strategy without tools, which
    asks one question.
    """

    tool_calls: Callable[[Toolbox], ToolCallFormat] | None = None


def _functions(toolbox: Toolbox) -> ToolCallFormat:
    return FunctionCalls(toolbox.tools)


def _react(toolbox: Toolbox) -> ToolCallFormat:
    return ReactCalls(toolbox.tools, lambda name: toolbox.refusal(name) is not None)


STRATEGIES: Final[Mapping[Strategy, StrategySpec]] = MappingProxyType(
    {
        Strategy.REACT: StrategySpec(_react),
        Strategy.LANGCHAIN: StrategySpec(_functions),
        Strategy.NATIVE_THINKING: StrategySpec(_functions),
        Strategy.SYNTHESIS: StrategySpec(),
        Strategy.SYNTHESIS_NATIVE_THINKING: StrategySpec(),
        Strategy.SINGLE_CALL: StrategySpec(),
    }
)


def tool_call_format(strategy: Strategy, toolbox: Toolbox) -> ToolCallFormat:
    """The format in which models of a strategy with tools call those of `toolbox`."""
    make = STRATEGIES[strategy].tool_calls
    if make is None:
        raise AssertionError(f"strategy {strategy} has no tools and does not run in the tool loop")
    return make(toolbox)
