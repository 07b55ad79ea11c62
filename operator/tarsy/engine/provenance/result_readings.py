"""Keeps the forms of stored results in which values are looked for.

Decision: a run checks many calls against the same results, and making the forms of a long result takes milliseconds.
So each form is made when it is first needed, and kept for the run, the latest used results up to a limit of characters.
"""

from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property
from uuid import UUID

from tarsy.engine.provenance.destinations import addresses_in
from tarsy.engine.provenance.readings import decoded_readings, folded_reading, plain_reading
from tarsy.record.integrity import Integrity
from tarsy.record.provenance import ToldResult

MOST_KEPT = 8_000_000
"""Characters of results whose forms a run keeps."""


class TrustedText:
    """A trusted text, with the addresses in it: the host of a URL stands there without a blank before it.

    Args:
        text: as it is.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.plain = plain_reading(text)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The plain forms of the addresses."""
        return frozenset(plain_reading(one) for one in addresses_in(self._text))


class ResultReadings:
    """The forms of one result, each made once.

    Args:
        result: as on record.
    """

    def __init__(self, result: ToldResult) -> None:
        self.result = result

    @cached_property
    def asked(self) -> str:
        """The plain form of the arguments of its call."""
        return plain_reading(self.result.arguments)

    @cached_property
    def control(self) -> tuple[TrustedText, ...]:
        """The parts that only the control plane writes."""
        marks, text = self.result.marks, self.result.text
        pieces = [text] if marks.integrity is Integrity.K else list(marks.pieces(text))
        return tuple(TrustedText(piece) for piece in pieces)

    @cached_property
    def plain(self) -> str:
        """The plain form of the other parts."""
        return plain_reading(self._outside)

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The folded forms of the other parts, and of the texts that they stand for."""
        return tuple(folded_reading(reading) for reading in decoded_readings(self._outside))

    @property
    def _outside(self) -> str:
        return "\n".join(_outside(self.result.text, self.result.marks.control))


class KeptReadings:
    """The forms of the results of one run.

    Args:
        most: characters of results whose forms are kept.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[UUID, ResultReadings] = OrderedDict()
        self._characters = 0

    def of(self, result: ToldResult) -> ResultReadings:
        """Returns the forms of a result, those made before if it is the same."""
        kept = self._kept.pop(result.id, None)
        if kept is not None:
            self._characters -= len(kept.result.text)
        if kept is None or kept.result != result:
            kept = ResultReadings(result)
        self._kept[result.id] = kept
        self._characters += len(result.text)
        while self._characters > self._most:
            _, oldest = self._kept.popitem(last=False)
            self._characters -= len(oldest.result.text)
        return kept


def _outside(text: str, spans: Iterable[tuple[int, int]]) -> Iterable[str]:
    """Yields the parts of a text that are in no span."""
    place = 0
    for start, end in spans:
        yield text[place:start]
        place = end
    yield text[place:]
