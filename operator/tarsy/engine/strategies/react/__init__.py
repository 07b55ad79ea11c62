"""Parses ReAct text of any model: Thought, Action, Action Input, Observation, Final Answer.

`parse_react` is pure, so the position in a conversation is always what its messages say. It forgives what models get
wrong and never guesses a tool: what it cannot place goes back to the model as feedback.
"""

from tarsy.engine.strategies.react.parsed import Kind, Parsed
from tarsy.engine.strategies.react.parser import parse_react

__all__ = ["Kind", "Parsed", "parse_react"]
