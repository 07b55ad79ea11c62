"""Reads and writes cassettes: the recorded world of one investigation, as a file (`tarsy.dev/cassette/v1`).

A cassette is JSON Lines, usually compressed with gzip. Line 1 is the header: the alert, its runbook, the time, the tool
servers with the definitions of their tools, and the origin. Each further line is one tool call with its result.

Decision: a call is found by server, tool and arguments, never by the conversation before it. A cassette that is keyed
by the conversation misses after every change of a prompt, which is what replays are for.

A cassette may come from anywhere, so it is untrusted: every size is bounded before it is used, the unpacked size while
unpacking. An error names the file, the line, the field and the remedy.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self, TypeVar

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.judging.precedent import MOST_PRECEDENTS, Precedent
from tarsy.record.messages import Access, ToolDefinition

FORMAT: Final = "tarsy.dev/cassette/v1"
MAX_FILE_BYTES: Final = 16 << 20
"""Maximum size of a cassette as stored."""
MAX_UNPACKED_BYTES: Final = 64 << 20
"""Maximum size of a cassette without compression."""
MAX_LINE_BYTES: Final = 8 << 20
"""Maximum size of one line."""
MAX_CALLS: Final = 20_000
"""Maximum number of recorded calls."""

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_DEEPEST = 100
"""Maximum depth of arguments, so that no recursion over them ends in an error."""


class CassetteError(ValueError):
    """A cassette that cannot be read or written; the message names the file, the line, the field and the remedy."""


class _Part(BaseModel):
    """A part of a cassette. Fields of newer versions are ignored."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


_P = TypeVar("_P", bound=_Part)
_Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
_Short = Annotated[str, StringConstraints(max_length=1_024)]
_Names = Annotated[tuple[_Name, ...], Field(max_length=2_000)]


class AlertRecord(_Part):
    """The alert: its type, and its text as agents receive it."""

    type: _Name
    data: str


class ToolRecord(_Part):
    """One tool of a server: its name there, what models are told of it, and its effect as far as it is known.

    `defined` is False for a tool that was offered to no agent: only its name and digest are known.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    defined: bool = True
    description: str = ""
    parameters_schema: dict[str, JsonValue] = Field(default_factory=dict)
    digest: _Short = ""
    access: Access = Access.UNKNOWN
    repeatable: bool = False

    def definition(self, server: str) -> ToolDefinition:
        """Returns the definition that models are sent."""
        return ToolDefinition(f"{server}.{self.name}", self.description, dict(self.parameters_schema))


class ServerRecord(_Part):
    """One tool server: its tools, its own instructions, and why it was not available (None: it was)."""

    tools: Annotated[tuple[ToolRecord, ...], Field(max_length=2_000)] = ()
    instructions: str = ""
    unavailable: str | None = None


class SourceRecord(_Part):
    """The investigation that was recorded."""

    namespace: _Short = ""
    name: _Short = ""
    uid: _Short = ""
    plan_hash: _Short = ""
    chain: _Short = ""
    chain_namespace: _Short = ""


class AgentRecord(_Part):
    """When the agent at an index of a stage began, which its prompt tells.

    `changed` are the tools that their servers had changed since the run began, so that it was not offered them.
    """

    stage: Annotated[int, Field(ge=0)]
    agent: Annotated[int, Field(ge=0)]
    began: AwareDatetime
    changed: Annotated[dict[_Name, _Names], Field(max_length=100)] | None = None


class KnownStatement(_Part):
    """A statement of a stage of kind Changes, with a quote from the result of one of its tools."""

    text: str
    tool: _Name
    quote: str


class ChangesRecord(_Part):
    """The conclusion of a stage of kind Changes."""

    summary: str
    confidence: Literal["High", "Medium", "Low", "Inconclusive"] = "Inconclusive"
    statements: Annotated[tuple[KnownStatement, ...], Field(max_length=1_000)] = ()


class Truth(_Part):
    """The known cause, for those who measure. No agent is told any of it.

    `verdict` is NoFault where nothing was wrong. `entities` must be blamed, `distractors` must not.
    """

    verdict: Literal["Cause", "NoFault"] = "Cause"
    summary: str = ""
    category: str = ""
    entities: Annotated[tuple[_Short, ...], Field(max_length=100)] = ()
    distractors: Annotated[tuple[_Short, ...], Field(max_length=100)] = ()
    keywords: Annotated[tuple[_Short, ...], Field(max_length=100)] = ()
    forbidden: Annotated[tuple[_Short, ...], Field(max_length=100)] = ()
    required_tools: Annotated[tuple[_Short, ...], Field(max_length=100)] = ()


class Header(_Part):
    """The first line of a cassette; `now` is the time at which the recorded run began."""

    cassette: Literal["tarsy.dev/cassette/v1"] = FORMAT
    alert: AlertRecord
    runbook: str | None = None
    now: AwareDatetime
    targets: Annotated[tuple[_Short, ...], Field(max_length=100)] = ()
    servers: Annotated[dict[_Name, ServerRecord], Field(max_length=100)] = Field(default_factory=dict)
    source: SourceRecord = SourceRecord()
    agents: Annotated[tuple[AgentRecord, ...], Field(max_length=1_000)] = ()
    changes: ChangesRecord | None = None
    precedents: Annotated[tuple[Precedent, ...], Field(max_length=MOST_PRECEDENTS)] | None = None
    truth: Truth | None = None


class Place(_Part):
    """Identifies the place of a call in the recorded run: index of the stage, of its agent, of the message and
    within the message."""

    stage: int
    agent: int
    message: int
    index: int


class RecordedCall(_Part):
    """One tool call: its arguments as JSON, or as the text that a model wrote, and the result without secrets.

    `shown` is what later agents were sent instead of the result; None: the result. `integrity` tells who can write the
    result, and `control` are the spans in it that the control plane computed; `state`: it is a state at the time of
    the call. A `wildcard` answers whatever the other arguments of a call are: those that are given here must be the
    same, nothing is known of the rest.
    """

    server: _Name
    tool: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    arguments: JsonValue = Field(default_factory=dict)
    result: str
    is_error: bool = False
    at: AwareDatetime | None = None
    integrity: Integrity | None = Field(default=None, alias="class")
    control: tuple[tuple[int, int], ...] = ()
    state: bool = False
    place: Place | None = None
    shown: str | None = None
    wildcard: bool | None = None

    @property
    def marks(self) -> EvidenceMarks | None:
        """The integrity classes of the result; None: the recording has none."""
        return None if self.integrity is None else EvidenceMarks(self.integrity, self.control, self.state)

    @property
    def arguments_text(self) -> str:
        """The arguments as a model writes them."""
        return self.arguments if isinstance(self.arguments, str) else orjson.dumps(self.arguments).decode()


@dataclass(frozen=True, slots=True)
class Cassette:
    """The recorded world of one investigation.

    Attributes:
        header: the alert, the time and the tool servers.
        calls: the recorded calls, in the order in which they were made.
    """

    header: Header
    calls: tuple[RecordedCall, ...] = ()

    def line(self, index: int) -> int:
        """Returns the line of a call in the file, which is what reports name."""
        return index + 2

    def with_truth(self, truth: Truth | None) -> Self:
        """Returns the cassette with another known cause."""
        return type(self)(self.header.model_copy(update={"truth": truth}), self.calls)


def read_cassette(data: bytes, name: str = "the cassette") -> Cassette:
    """Reads a cassette, compressed or not.

    Args:
        data: content of the file.
        name: name of the file, for errors.

    Raises:
        CassetteError: it is none, or exceeds a limit.
    """
    if len(data) > MAX_FILE_BYTES:
        raise CassetteError(f"{name}: {len(data):,} bytes; at most {MAX_FILE_BYTES:,} are read. {_SMALLER}")
    text = _unpack(data, name) if data.startswith(_GZIP) else data
    lines = _lines(text, name)
    try:
        number, first = next(lines)
    except StopIteration:
        raise CassetteError(f"{name}: is empty; export one with tarsy eval export inv/NAME -o FILE") from None
    header = _header(first, name, number)
    calls: list[RecordedCall] = []
    for number, line in lines:
        if len(calls) == MAX_CALLS:
            raise CassetteError(f"{name}, line {number}: more than {MAX_CALLS:,} calls. {_SMALLER}")
        calls.append(_part(RecordedCall, line, name, number))
        if not isinstance(calls[-1].arguments, str | dict):
            raise CassetteError(f"{name}, line {number}: arguments: must be a JSON object, or the text of one")
    return Cassette(header, tuple(calls))


def cassette_lines(cassette: Cassette) -> Iterator[bytes]:
    """Yields the lines of the file of a cassette, before compression."""
    for part in (cassette.header, *cassette.calls):
        yield orjson.dumps(part.model_dump(mode="json", by_alias=True, exclude_none=True)) + b"\n"


def write_cassette(cassette: Cassette) -> bytes:
    """Returns the file of a cassette: the same bytes for the same cassette.

    Raises:
        CassetteError: it exceeds a limit, so that it could not be read.
    """
    if len(cassette.calls) > MAX_CALLS:
        raise CassetteError(f"the record has {len(cassette.calls):,} calls; a cassette holds at most {MAX_CALLS:,}")
    packer = zlib.compressobj(6, wbits=31)
    packed: list[bytes] = []
    unpacked = 0
    for line in cassette_lines(cassette):
        unpacked += len(line)
        if len(line) > MAX_LINE_BYTES or unpacked > MAX_UNPACKED_BYTES:
            raise CassetteError(
                f"the record is larger than a cassette may be ({MAX_LINE_BYTES:,} bytes a line, "
                f"{MAX_UNPACKED_BYTES:,} in all)"
            )
        packed.append(packer.compress(line))
    packed.append(packer.flush())
    data = b"".join(packed)
    if len(data) > MAX_FILE_BYTES:
        raise CassetteError(f"the cassette has {len(data):,} bytes; at most {MAX_FILE_BYTES:,} can be stored")
    return data


_SMALLER = "Use a cassette of one investigation; remove the calls that are not needed."


def _unpack(data: bytes, name: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    size, rest = 0, data
    try:
        while not unpacker.eof:
            part = unpacker.decompress(rest, _CHUNK)
            rest = unpacker.unconsumed_tail
            size += len(part)
            if size > MAX_UNPACKED_BYTES:
                raise CassetteError(f"{name}: has more than {MAX_UNPACKED_BYTES:,} bytes when unpacked. {_SMALLER}")
            parts.append(part)
            if not part and not rest and not unpacker.eof:
                raise CassetteError(f"{name}: the gzip data end early; copy the file again")
    except zlib.error as error:
        raise CassetteError(f"{name}: is no valid gzip file ({error}); copy the file again") from None
    if unpacker.unused_data:
        raise CassetteError(f"{name}: has data after the end of the gzip data; store one cassette per file")
    return b"".join(parts)


def _lines(text: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Yields the lines with their numbers; none is empty, so that the number of a call tells its line."""
    begin, number = 0, 0
    while begin < len(text):
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        number += 1
        if end - begin > MAX_LINE_BYTES:
            raise CassetteError(f"{name}, line {number}: has more than {MAX_LINE_BYTES:,} bytes. {_SMALLER}")
        line = text[begin:end].strip()
        if not line:
            raise CassetteError(f"{name}, line {number}: is empty; remove it")
        yield number, line
        begin = end + 1


def is_nested_deeper(value: object, levels: int) -> bool:
    """Returns whether lists and objects of a parsed JSON value nest deeper than some levels, without recursion."""
    level: Sequence[object] = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _header(line: bytes, name: str, number: int) -> Header:
    found = _json(line, name, number)
    said = found.get("cassette")
    if said != FORMAT:
        raise CassetteError(
            f"{name}, line {number}: cassette: is {str(said)[:60]!r}, must be {FORMAT!r}; the first line is the header"
        )
    return _validated(Header, found, name, number)


def _part(model: type[_P], line: bytes, name: str, number: int) -> _P:
    return _validated(model, _json(line, name, number), name, number)


def _json(line: bytes, name: str, number: int) -> Mapping[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise CassetteError(
            f"{name}, line {number}: is no valid JSON ({error}); each line is one JSON object"
        ) from None
    if not isinstance(found, dict):
        raise CassetteError(f"{name}, line {number}: is no JSON object; each line is one JSON object")
    if is_nested_deeper(found, _DEEPEST):
        raise CassetteError(f"{name}, line {number}: is nested deeper than {_DEEPEST} levels; make it flatter")
    return found


def _validated(model: type[_P], found: Mapping[str, Any], name: str, number: int) -> _P:
    try:
        return model.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the object"
        more = f" ({error.error_count() - 1} more errors in this line)" if error.error_count() > 1 else ""
        raise CassetteError(f"{name}, line {number}: {where}: {first['msg']}{more}") from None
