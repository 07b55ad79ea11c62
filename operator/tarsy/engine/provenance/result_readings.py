"""Keeps the forms of prompts and stored results in which values are looked for.

Decision: a run checks many calls against the same texts; reading a long result and making its forms take milliseconds.
So each form is made when it is first needed, and kept for the run, the latest told texts up to a limit of characters.
A result on record does not change, so one that is kept is not read again.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar
from uuid import UUID

from tarsy.engine.provenance.destinations import addresses_in
from tarsy.engine.provenance.readings import (
    SearchedText,
    decoded_readings,
    folded_reading,
    longest_reading,
    plain_reading,
)
from tarsy.record.approvals.provenance import ToldResult
from tarsy.record.integrity import Integrity

MOST_KEPT = 8_000_000
"""Characters of results whose forms a run keeps; of prompts as many."""

_Key = TypeVar("_Key", bound=Hashable)
_Forms = TypeVar("_Forms")


class TrustedText:
    """A trusted text, with the addresses in it: the host of a URL stands there without a blank before it.

    Args:
        text: as it is.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def size(self) -> int:
        """An upper bound of the characters that are searched."""
        return longest_reading(self.text)

    @cached_property
    def plain(self) -> SearchedText:
        """The plain form of the text."""
        return SearchedText(plain_reading(self.text))

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The plain forms of the addresses."""
        return frozenset(plain_reading(one) for one in addresses_in(self.text))


class ResultReadings:
    """The forms of one result, each made once.

    Args:
        result: as on record.
    """

    def __init__(self, result: ToldResult) -> None:
        self.result = result

    @cached_property
    def size(self) -> int:
        """An upper bound of the characters that are searched."""
        return longest_reading(self.result.text) + longest_reading(self.result.arguments)

    @cached_property
    def asked(self) -> SearchedText:
        """The plain form of the arguments of its call."""
        return SearchedText(plain_reading(self.result.arguments))

    @cached_property
    def control(self) -> tuple[TrustedText, ...]:
        """The parts that only the control plane writes."""
        marks, text = self.result.marks, self.result.text
        pieces = [text] if marks.integrity is Integrity.K else list(marks.pieces(text))
        return tuple(TrustedText(piece) for piece in pieces)

    @cached_property
    def plain(self) -> SearchedText:
        """The plain form of the other parts."""
        return SearchedText(plain_reading(self._outside))

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The folded forms of the other parts, and of the texts that they stand for."""
        return tuple(folded_reading(reading) for reading in decoded_readings(self._outside))

    @property
    def _outside(self) -> str:
        return "\n".join(_outside(self.result.text, self.result.marks.control))


class _LatestUsed(Generic[_Key, _Forms]):
    """Forms of texts by a key, the latest used ones up to a number of characters."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, tuple[_Forms, int]] = OrderedDict()
        self._characters = 0

    def get(self, key: _Key) -> _Forms | None:
        if (found := self._kept.get(key)) is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: _Key, forms: _Forms, characters: int) -> Sequence[_Key]:
        """Keeps the forms of a text of so many characters; returns the keys of those that are dropped for them."""
        self._characters += characters - self._kept.pop(key, (None, 0))[1]
        self._kept[key] = forms, characters
        dropped: list[_Key] = []
        while self._characters > self._most:
            oldest, (_, size) = self._kept.popitem(last=False)
            self._characters -= size
            dropped.append(oldest)
        return dropped


class KeptReadings:
    """The forms of the prompts and results of one run.

    Args:
        most: characters of results whose forms are kept, and of prompts.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._results: _LatestUsed[UUID, ResultReadings] = _LatestUsed(most)
        self._prompts: _LatestUsed[str, TrustedText] = _LatestUsed(most)
        self._told: dict[UUID, dict[UUID, ResultReadings]] = {}

    def trusted(self, text: str) -> TrustedText:
        """Returns the forms of a text of a prompt, those made before if there are any."""
        found = self._prompts.get(text)
        if found is None:
            found = TrustedText(text)
            self._prompts.put(text, found, len(text))
        return found

    def of(self, result: ToldResult) -> ResultReadings:
        """Returns the forms of a result, those made before if it is the same."""
        kept = self._results.get(result.id)
        if kept is None or kept.result != result:
            kept = ResultReadings(result)
            for dropped in (result.id, *self._results.put(result.id, kept, len(result.text))):
                for told in self._told.values():
                    told.pop(dropped, None)
        return kept

    def tell(self, execution: UUID, result: ToldResult) -> ResultReadings:
        """Keeps a result as one that the model of an execution may know of, and returns its forms."""
        kept = self.of(result)
        if self._results.get(result.id) is kept:
            self._told.setdefault(execution, {})[result.id] = kept
        return kept

    def told(self, execution: UUID) -> Mapping[UUID, ResultReadings]:
        """Returns the kept results that the model of an execution may know of, by their ids.

        It is asked for at each call of a conversation that grows, so that none of them is looked up or copied.
        """
        return self._told.get(execution, {})


def _outside(text: str, spans: Iterable[tuple[int, int]]) -> Iterable[str]:
    """Yields the parts of a text that are in no span."""
    place = 0
    for start, end in spans:
        yield text[place:start]
        place = end
    yield text[place:]
