"""Finds the answer to a tool call among recorded calls, by a ladder: exact, normalised, derived, wildcard, miss.

| rung | the answer is |
|---|---|
| exact | the result of a call with the same arguments, as canonical JSON |
| normalised | the result of a call whose arguments mean the same (`evals.arguments`) |
| derived | computed from a recorded result that contains more (`evals.derived`) |
| wildcard | recorded for all arguments beyond those that it gives (cassettes of benchmarks) |
| miss | none, with the reason |

Of several recorded calls with the same arguments, the one at the same place of the run answers, else they answer in the
order in which they were made, each once; the last one answers all further calls. The caller keeps which lines have
answered (`served`), because it knows what is on record: a run that resumes goes on where it stopped.

Everything here is a pure function of the cassette.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tarsy.evals.arguments import normalised_arguments
from tarsy.evals.cassette import Cassette, Place, RecordedCall
from tarsy.evals.derived import derive
from tarsy.evals.divergence import canonical_arguments
from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.replay import Rung

NO_DEFINITIONS = (
    "The record contains no definitions of the tools of server {server!r}, so no call of it can be answered."
)
NOT_RECORDED = "{server}.{tool} with these arguments is not recorded in this replay."


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer to a call; `line` is where it comes from, None for a miss, which has a `reason`."""

    rung: Rung
    result: str = ""
    is_error: bool = False
    line: int | None = None
    reason: str = ""
    marks: EvidenceMarks | None = None


_Key = tuple[str, str, str]


class Ladder:
    """Answers the tool calls of a replay from a cassette.

    Args:
        cassette: the recorded calls, with the definitions of the tools.
    """

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._exact: defaultdict[_Key, list[int]] = defaultdict(list)
        self._normalised: defaultdict[_Key, list[int]] = defaultdict(list)
        self._by_server: defaultdict[str, list[int]] = defaultdict(list)
        self._schemas = {
            (server, tool.name): tool.parameters_schema
            for server, found in cassette.header.servers.items()
            for tool in found.tools
        }
        self._places: dict[Place, int] = {}
        self._wildcards: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for index, call in enumerate(cassette.calls):
            text = call.arguments_text
            if call.wildcard:
                self._wildcards[call.server, call.tool].append(index)
                continue
            self._exact[call.server, call.tool, canonical_arguments(text)].append(index)
            self._normalised[call.server, call.tool, self._meaning(call.server, call.tool, text)].append(index)
            self._by_server[call.server].append(index)
            if call.place is not None:
                self._places[call.place] = index

    def answer(
        self, server: str, tool: str, arguments: str, *, place: Place | None = None, served: Collection[int] = ()
    ) -> RecordedAnswer:
        """Returns the answer to a call.

        Args:
            server: name of the tool server.
            tool: name of the tool there.
            arguments: as JSON, or the text that a model wrote.
            place: where the run makes the call; None: unknown.
            served: lines that have answered a call already.
        """
        if (server, tool) not in self._schemas and not self._has_definitions(server):
            return RecordedAnswer(Rung.MISS, reason=NO_DEFINITIONS.format(server=server))
        if found := self._exact.get((server, tool, canonical_arguments(arguments))):
            return self._recorded(Rung.EXACT, found, place, served)
        meaning = self._meaning(server, tool, arguments)
        if found := self._normalised.get((server, tool, meaning)):
            return self._recorded(Rung.NORMALISED, found, place, served)
        for index in self._by_server.get(server, ()):
            call = self._cassette.calls[index]
            text = derive(tool, meaning, call, self._meaning(server, call.tool, call.arguments_text))
            if text is not None:
                marks = None if call.marks is None else call.marks.moved(call.result, text)
                return RecordedAnswer(Rung.DERIVED, text, line=self._cassette.line(index), marks=marks)
        for index in self._wildcards.get((server, tool), ()):
            call = self._cassette.calls[index]
            if _agrees(meaning, self._meaning(server, tool, call.arguments_text)):
                return RecordedAnswer(
                    Rung.WILDCARD, call.result, call.is_error, self._cassette.line(index), marks=call.marks
                )
        return RecordedAnswer(Rung.MISS, reason=NOT_RECORDED.format(server=server, tool=tool))

    def _recorded(
        self, rung: Rung, found: Sequence[int], place: Place | None, served: Collection[int]
    ) -> RecordedAnswer:
        there = self._places.get(place) if place is not None else None
        fresh = (index for index in found if self._cassette.line(index) not in served)
        index = there if there in found and there is not None else next(fresh, found[-1])
        call: RecordedCall = self._cassette.calls[index]
        return RecordedAnswer(rung, call.result, call.is_error, self._cassette.line(index), marks=call.marks)

    def _has_definitions(self, server: str) -> bool:
        found = self._cassette.header.servers.get(server)
        return found is not None and bool(found.tools)

    def _meaning(self, server: str, tool: str, arguments: str) -> str:
        return normalised_arguments(arguments, self._schemas.get((server, tool), _NO_SCHEMA))


def _agrees(meaning: str, recorded: str) -> bool:
    """Returns whether a call has all arguments of a wildcard."""
    asked, given = json.loads(meaning), json.loads(recorded)
    return all(key in asked and asked[key] == value for key, value in given.items())


_NO_SCHEMA: Mapping[str, object] = {}
