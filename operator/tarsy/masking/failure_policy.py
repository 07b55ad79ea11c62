"""Decides what is passed on where a text cannot be searched for secrets as its setting says: the one place that does.

Two rules, each named by its function. `mask_or_fail` is for texts that a run cannot do without (alerts, runbooks,
questions): a custom pattern that takes too long costs its own finds and nothing else, and only where no masker got
through is the text withheld. `without_secrets_or_withheld` is for texts that a run can ask for again or do without
(results and arguments of tools, words of models): all patterns got through, or the text is withheld. No text is
passed on unsearched.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tarsy.masking.errors import MaskingFailed

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MaskingOutcome:
    """A text that may be passed on.

    Args:
        text: Without secrets, or the notice.
        withheld: Whether it is the notice.
    """

    text: str
    withheld: bool = False


def mask_or_fail(mask: Callable[[str], str], text: str, what: str) -> str:
    """Masks a text; keeps what the other patterns left of it where a custom one fails, else gives a notice.

    Args:
        mask: Raises MaskingFailed with what is left of the text, or anything else.
        text: From outside.
        what: Names the text, for the log and the notice ("alert").
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
    """Masks a text; gives the notice where any pattern fails.

    Args:
        mask: Raises anything where it cannot.
        text: From outside.
        what: Names the text, for the log.
        notice: Stands in the place of the text.
    """
    try:
        return MaskingOutcome(mask(text) if text else text)
    except Exception as error:
        _log.warning("%s was withheld, it could not be searched for secrets: %s", what, type(error).__name__)
        return MaskingOutcome(notice, withheld=True)
