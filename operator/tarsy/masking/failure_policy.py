"""Decides which text is passed on if masking fails. No other module decides this.

There are two rules. `mask_or_fail` is for texts that a run needs (alerts, runbooks, questions): if a custom pattern
takes too long, the text is passed on without that pattern, and it is withheld only if no pattern finished.
`without_secrets_or_withheld` is for texts that a run can request again or miss (results and arguments of tools, output
of models): the text is withheld unless all patterns finished. No text is passed on unsearched.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tarsy.masking.errors import MaskingFailed

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# Bytes per second of CPU time, of text unlike any that RE2's automata have met: they grow by each such byte. Text that
# they know is masked ten times as fast (`tests.bench.masking`).
_SLOWEST = 125_000
_LONGEST = 0.005  # seconds that masking may hold up the event loop
_BYTES = 4  # of the longest character
MOST_ON_LOOP = int(_SLOWEST * _LONGEST / _BYTES)
"""Maximum number of characters that are masked on the event loop."""


@dataclass(frozen=True, slots=True)
class MaskingOutcome:
    """A text that may be passed on.

    Args:
        text: The masked text, or the notice.
        withheld: Whether `text` is the notice.
    """

    text: str
    withheld: bool = False


def masking_size(text: str) -> int:
    """Returns the characters that a text counts as in `off_loop`: those of ASCII are bytes, four of them are one."""
    return -(-len(text) // _BYTES) if text.isascii() else len(text)


async def off_loop(work: Callable[[], _T], size: int) -> _T:
    """Masks: a short text on the event loop, a longer one in a thread.

    Args:
        work: Masks the text.
        size: Number of characters of the text (`masking_size`).
    """
    return await asyncio.to_thread(work) if size > MOST_ON_LOOP else work()


def mask_or_fail(mask: Callable[[str], str], text: str, what: str) -> str:
    """Masks a text; skips a custom pattern that fails, and returns a notice if masking fails altogether.

    Args:
        mask: Masks a text; raises MaskingFailed with the partly masked text, or another exception.
        text: Untrusted text.
        what: Name of the text, for the log and the notice ("an alert").
    """
    try:
        return mask(text) if text else text
    except MaskingFailed as error:
        if error.left is not None:
            _log.warning("%s was masked without a custom pattern: %s", what, error)
            return error.left
        reason: Exception = error
    except Exception as error:
        reason = error
    _log.warning("%s was withheld, it could not be searched for secrets: %s", what, type(reason).__name__)
    return f"[{what} could not be searched for secrets and is withheld]"


def without_secrets_or_withheld(mask: Callable[[str], str], text: str, what: str, notice: str) -> MaskingOutcome:
    """Masks a text; returns the notice if any pattern fails.

    Args:
        mask: Masks a text; raises any exception on failure.
        text: Untrusted text.
        what: Name of the text, for the log.
        notice: Replacement of a withheld text.
    """
    try:
        return MaskingOutcome(mask(text) if text else text)
    except Exception as error:
        _log.warning("%s was withheld, it could not be searched for secrets: %s", what, type(error).__name__)
        return MaskingOutcome(notice, withheld=True)
