"""Defines the data that a second attempt of a stage gets from the first one: the results of its tool calls, and its
usage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tarsy.record.integrity import EvidenceMarks

MOST_CALLS: Final = 2_000
"""Tool calls of a first attempt that are handed on, the latest ones."""


@dataclass(frozen=True, slots=True)
class HandedOnCall:
    """A tool call that was made and did not fail, with its whole result and the marks of that."""

    server: str
    tool: str
    arguments: str
    result: str
    marks: EvidenceMarks | None = None


@dataclass(frozen=True, slots=True)
class FirstAttempt:
    """The work of the first attempt of a stage.

    `calls` are in the order in which they were made. The tokens are those of its model calls, estimated where a
    provider reported none.
    """

    calls: Sequence[HandedOnCall] = ()
    input_tokens: int = 0
    output_tokens: int = 0
