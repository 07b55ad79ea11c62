"""Finds text of sensitive results in what a call would send: a pure function over the two.

Two texts share a run where `SHORTEST_RUN` letters and digits in a row are equal in their folded forms, whatever
separates them there (`readings`). Parts of either that are base64, hexadecimal digits or percent signs are decoded, and
what comes of that once more. Values of one call that leave are also read as one text. What the prompt itself says
(question, instructions, alert) does not count: the model knew it without the result.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tarsy.engine.provenance.leaves import argument_values
from tarsy.engine.provenance.readings import decoded_readings, folded_reading

SHORTEST_RUN = 16
"""Letters and digits in a row, equal in argument and sensitive result, from which on a call is refused."""


class OutflowSearch:
    """Looks for sensitive text in arguments that leave.

    Args:
        leaving: the arguments that leave, parsed.
        known: texts of the prompt.
    """

    def __init__(self, leaving: Mapping[str, Any], known: Iterable[str] = ()) -> None:
        values = "".join(value.text for value in argument_values(leaving))
        written = json.dumps(leaving, ensure_ascii=False, default=str)
        sent = {run for text in (values, written) for reading in _readings(text) for run in _runs(reading)}
        self._runs = sent - {run for text in known for run in _runs(folded_reading(text))} if sent else sent

    def shares(self, sensitive: str) -> bool:
        """Returns whether what leaves shares a run with a text.

        Args:
            sensitive: a result, as on record.
        """
        if not self._runs:
            return False
        return any(run in self._runs for reading in _readings(sensitive) for run in _runs(reading))


def _readings(text: str) -> Iterator[str]:
    """Yields the folded forms of a text, of what parts of it stand for, and of what parts of that stand for."""
    for once in decoded_readings(text):
        yield folded_reading(once)
        if once is not text:
            yield from (folded_reading(twice) for twice in decoded_readings(once) if twice is not once)


def _runs(folded: str) -> Iterator[str]:
    for start in range(len(folded) - SHORTEST_RUN + 1):
        yield folded[start : start + SHORTEST_RUN]
