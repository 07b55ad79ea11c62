"""Finds the sections of an answer: where Thought, Action, Action Input and Final Answer begin and end.

Three patterns find every place that may be a header, a state machine over those places
decides. Nothing looks at a character more than a few times, whatever the text; text without headers costs only
the search. A header inside a Final Answer is part of the answer, but it is kept as `late`, because a tool that exists,
with its input, takes the word back.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, zip_longest
from operator import attrgetter

_LINE = re.compile(
    r"""^(?P<lead>[ \t>#*_`~+•-]*+(?:\d{1,3}[.)][ \t*_`]*+)?+)
    (?:(?P<word>thoughts?|action(?:[ \t_-]?inputs?)?|final[ \t_-]?answer|observation)
       (?:[ \t]?\d{1,3})?+ (?P<close>[*_`"]*+)[ \t]*+(?:(?P<colon>[:：])|(?=$))
     |(?P<based>(?-i:\[Based[ ]on)))""",
    re.I | re.M | re.X,
)
_MIDLINE = re.compile(
    r"(?P<edge>[.!?。！？])(?P<lead>[ \t*`]*+)(?P<word>Final Answer|Action(?: Input)?)(?P<close>[*_`]*+)[ \t]*+[:：]"
)
_INPUT_HEADER = r"(?i:action[ \t_-]?input)[*_`\"]*+[ \t]*+[:：]"
_INLINE = re.compile(
    rf"(?<!\w)(?:(?P<input>{_INPUT_HEADER})"
    rf"|Action[*`]*+[:：][*`]*+(?=[ \t]*+[^\s:：]{{1,80}}+[ \t*`]++{_INPUT_HEADER}))"
)
_ECHOES = re.compile("Please specify|what Action you want to take|Error in reasoning")
_MOST = 4000
"""Headers of one kind looked at: a text with more of them is a model that repeats itself."""
_FENCE = re.compile(r"^[ \t]*```", re.M)


class SectionHeader(Enum):
    """Lists the kinds of sections."""

    THOUGHT = "Thought"
    ACTION = "Action"
    INPUT = "Action Input"
    ANSWER = "Final Answer"
    STOP = "Observation"


@dataclass(slots=True)
class Section:
    """One section: `start` of its header, `begin` and `end` of its content; `late`: after a Final Answer began."""

    header: SectionHeader
    start: int
    begin: int
    end: int
    mark: str = ""
    quoted: bool = False
    late: bool = False
    lower: bool = False


@dataclass(slots=True)
class Sections:
    """All sections of a text, up to `stop`: where the model began to invent what a tool would say."""

    text: str
    found: list[Section] = field(default_factory=list)
    stop: int = 0

    def content(self, section: Section) -> str:
        """The section's text without the markup around it."""
        return tidy(self.text[section.begin : section.end], section.mark, section.quoted)

    def blank(self, section: Section) -> bool:
        """Whether the section says nothing."""
        return not self.content(section)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place that may be a header."""

    start: int
    end: int
    header: SectionHeader
    lead: str
    how: str  # "line", "bare" (a line without a colon), "mid", "inline"
    closed: bool
    lower: bool

    @property
    def listed(self) -> bool:
        return self.how in {"line", "bare"} and bool(re.search(r"[-+•\d>]|\*[ \t]", self.lead))


def tidy(text: str, mark: str = "", quoted: bool = False) -> str:
    """Text without surrounding blanks, the rest of its header's markup, and a code fence it did not open.

    Args:
        text: a section's content.
        mark: the emphasis its header opened and did not close.
        quoted: whether its header stood in a block quote.
    """
    if quoted:
        text = re.sub(r"^[ \t]*>[ \t]?", "", text, flags=re.M)
    if mark:
        line, newline, rest = text.partition("\n")
        text = line.rstrip().removesuffix(mark[::-1]) + newline + rest
    text = text.strip()
    if text.endswith("```") and len(_FENCE.findall(text)) % 2:
        text = text[:-3].rstrip()
    return text


def find_sections(text: str) -> Sections:
    """Reads `text` (with `\\n` line ends) into its sections."""
    return _Reader(text).read()


def _places(text: str) -> list[_Place]:
    found = [_line(m) for m in islice(_LINE.finditer(text), _MOST)]
    found += [_midline(m) for m in islice(_MIDLINE.finditer(text), _MOST)]
    found += [_inline(m) for m in islice(_INLINE.finditer(text), _MOST)]
    found.sort(key=attrgetter("start"))
    places: list[_Place] = []
    for place in found:
        if not places or place.start >= places[-1].end:
            places.append(place)
    return places


def _header(word: str) -> SectionHeader:
    match word[0]:
        case "t" | "T":
            return SectionHeader.THOUGHT
        case "f" | "F":
            return SectionHeader.ANSWER
        case "a" | "A":
            return SectionHeader.INPUT if len(word) > len("Actions") else SectionHeader.ACTION
        case _:
            return SectionHeader.STOP


def _line(found: re.Match[str]) -> _Place:
    word, lead = found["word"], found["lead"]
    if word is None:
        return _Place(found.start(), found.end(), SectionHeader.STOP, lead, "based", True, False)
    how = "line" if found["colon"] else "bare"
    return _Place(found.start(), found.end(), _header(word), lead, how, bool(found["close"]), word[0].islower())


def _midline(found: re.Match[str]) -> _Place:
    start = found.end("edge")
    return _Place(start, found.end(), _header(found["word"]), found["lead"], "mid", bool(found["close"]), False)


def _inline(found: re.Match[str]) -> _Place:
    start = found.start()
    before = found.string[max(0, start - 3) : start]
    lead = before[len(before.rstrip("*`")) :]
    header = SectionHeader.INPUT if found["input"] else SectionHeader.ACTION
    return _Place(start - len(lead), found.end(), header, lead, "inline", False, False)


class _Reader:
    """The state machine."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._sections: list[Section] = []
        self._current: Section | None = None
        self._answer: Section | None = None
        self._fences = 0
        self._counted = 0

    def read(self) -> Sections:
        places = _places(self._text)
        stop = len(self._text)
        for place, following in zip_longest(places, places[1:]):
            if place.header is SectionHeader.STOP:
                if self._stops(place):
                    stop = place.start
                    break
                if self._in(SectionHeader.ACTION, SectionHeader.INPUT) and place.how == "line":
                    self._close(place.start)
                    self._current = None
            elif self._opens(place, following):
                self._open(place)
        self._close(stop)
        return Sections(self._text, self._sections, stop)

    def _in(self, *headers: SectionHeader) -> bool:
        return self._current is not None and self._current.header in headers

    def _stops(self, place: _Place) -> bool:
        if place.how == "based":
            return not place.lead.strip()
        if _ECHOES.search(self._text, place.end, self._line_end(place.end)):
            return False
        if self._answer is not None and not self._in(SectionHeader.INPUT):
            return place.how == "line" and not place.lead.strip() and not place.lower
        if place.how == "bare":
            return self._in(SectionHeader.INPUT) and not place.lower
        if place.lower:
            return self._in(SectionHeader.ACTION, SectionHeader.INPUT) and not self._is_parameter(place)
        return True

    def _opens(self, place: _Place, following: _Place | None) -> bool:
        if self._answer is not None and place.header is SectionHeader.ANSWER:
            return self._answer is self._current and self._empty_so_far(place)
        match place.how:
            case "mid":
                return self._opens_midline(place, following)
            case "inline" if place.header is SectionHeader.INPUT:
                return self._in(SectionHeader.ACTION)
            case "inline":
                return self._answer is None and not self._in(SectionHeader.ACTION, SectionHeader.INPUT)
        if self._in(SectionHeader.INPUT) and self._is_parameter(place):
            return False
        if self._answer is not None and self._in_fence(place.start):
            return False
        if place.how == "bare":
            return self._opens_bare(place)
        if place.header is SectionHeader.ACTION and (place.lower or place.listed):
            return self._is_complete(place, following)
        return True

    def _opens_midline(self, place: _Place, following: _Place | None) -> bool:
        if place.header is SectionHeader.INPUT:
            return self._in(SectionHeader.ACTION)
        if place.header is SectionHeader.ACTION and following is not None and following.header is SectionHeader.ACTION:
            return False  # it has no input, and the next one may have
        return self._answer is None and not self._in(SectionHeader.ACTION, SectionHeader.INPUT)

    def _opens_bare(self, place: _Place) -> bool:
        match place.header:
            case SectionHeader.ACTION:  # left to recovery, which wants a tool on the next line
                return False
            case _:
                return not place.lower

    def _is_parameter(self, place: _Place) -> bool:
        """Whether this is a line of an Action Input, `action: restart`, rather than a header in lower case."""
        assert self._current is not None
        return place.lower and not self._current.lower and not place.lead.strip()

    def _is_complete(self, place: _Place, following: _Place | None) -> bool:
        """Whether an Action that may as well be prose (`- Action: restart it`) names a tool and its input."""
        line = self._text[place.end : self._line_end(place.end)]
        return (following is not None and following.header is SectionHeader.INPUT) or "(" in line or "{" in line

    def _empty_so_far(self, place: _Place) -> bool:
        assert self._answer is not None
        return not self._text[self._answer.begin : place.start].strip(" \t\n*_`#>-")

    def _in_fence(self, position: int) -> bool:
        """Whether a code fence that was opened in the Final Answer is still open."""
        self._fences += sum(1 for _ in _FENCE.finditer(self._text, self._counted, position))
        self._counted = position
        return bool(self._fences % 2)

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else end

    def _close(self, end: int) -> None:
        if self._current is not None:
            self._current.end = end

    def _open(self, place: _Place) -> None:
        if place.header is SectionHeader.ANSWER and self._answer is not None:
            self._sections.pop()  # it said nothing
        else:
            self._close(place.start)
        mark = place.lead[len(place.lead.rstrip("*_`")) :]
        begin = place.end
        if mark and not place.closed and self._text.startswith(mark[::-1], begin):
            begin += len(mark)
            mark = ""
        section = Section(
            place.header,
            place.start,
            begin,
            begin,
            mark="" if place.closed else mark,
            quoted=">" in place.lead,
            late=self._answer is not None and place.header is not SectionHeader.ANSWER,
            lower=place.lower,
        )
        self._sections.append(section)
        self._current = section
        if place.header is SectionHeader.ANSWER:
            self._answer, self._fences, self._counted = section, 0, section.begin
