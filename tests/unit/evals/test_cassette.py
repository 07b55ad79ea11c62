"""Cassettes: what is written is read, limits at, below and above, errors that name line, field and remedy."""

import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evals import cassette as limits
from tarsy.evals.cassette import CassetteError, Truth, read_cassette, write_cassette
from unit.evals.cassettes import call, cassette

HEADER = {"cassette": limits.FORMAT, "alert": {"type": "t", "data": ""}, "now": "2026-03-01T12:00:00Z"}
CALL = {"server": "k", "tool": "t", "arguments": {}, "result": "r"}
JSON = st.none() | st.booleans() | st.text(max_size=8) | st.lists(st.text(max_size=3), max_size=2)


def lines(*parts: object) -> bytes:
    return b"\n".join(json.dumps(part).encode() for part in parts)


@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.text(max_size=20)), max_size=4))
def test_what_is_written_is_read(calls: list[tuple[dict[str, object], str]]) -> None:
    made = cassette(*(call("logs", result).model_copy(update={"arguments": args}) for args, result in calls))
    data = write_cassette(made)
    assert read_cassette(data) == made
    assert write_cassette(made) == data


def test_a_cassette_without_compression_and_with_unknown_fields_is_read() -> None:
    found = read_cassette(lines({**HEADER, "later": 1, "truth": {"entities": ["pod/a"]}}, {**CALL, "class": "A"}))
    assert found.header.truth == Truth(entities=("pod/a",))
    assert found.calls[0].integrity == "A" and found.line(0) == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty; export one"),
        (b"{", "line 1: is no valid JSON"),
        (b"[]", "line 1: is no JSON object"),
        (lines({**HEADER, "cassette": "v9"}), "line 1: cassette: is 'v9', must be 'tarsy.dev/cassette/v1'"),
        (lines({**HEADER, "now": "soon"}), "line 1: now: "),
        (lines(HEADER, {**CALL, "result": 1}), "line 2: result: "),
        (lines(HEADER, {**CALL, "arguments": [1]}), "line 2: arguments: must be a JSON object"),
        (lines(HEADER) + b"\n\n" + lines(CALL), "line 2: is empty; remove it"),
        (gzip.compress(lines(HEADER))[:-9], "end early"),
        (gzip.compress(lines(HEADER)) + b"x", "after the end"),
        (b"\x1f\x8bxxxxxxxxxxxxx", "no valid gzip"),
    ],
    ids=lambda value: value if isinstance(value, str) else "data",  # gzip data have the time in them
)
def test_an_error_names_place_and_remedy(data: bytes, said: str) -> None:
    with pytest.raises(CassetteError) as error:
        read_cassette(data, "case.jsonl.gz")
    assert str(error.value).startswith("case.jsonl.gz") and said in str(error.value)


def test_deep_arguments_are_refused() -> None:
    deep: object = {}
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(CassetteError, match="nested deeper"):
        read_cassette(lines(HEADER, {**CALL, "arguments": deep}))


def test_a_gzip_bomb_is_refused_while_it_is_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(80)) + packer.flush()
    assert len(bomb) < 1 << 20
    with pytest.raises(CassetteError, match="when unpacked"):
        read_cassette(bomb)


@pytest.mark.parametrize("calls", [2, 3, 4])
def test_calls_are_limited(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CALLS", 3)
    data = lines(HEADER, *[CALL] * calls)
    if calls <= 3:
        assert len(read_cassette(data).calls) == calls
    else:
        with pytest.raises(CassetteError, match="more than 3 calls"):
            read_cassette(data)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_sizes_are_limited(over: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = lines(HEADER, CALL)
    for name, size in (("MAX_FILE_BYTES", len(data)), ("MAX_LINE_BYTES", len(lines(HEADER)))):
        with monkeypatch.context() as patched:
            patched.setattr(limits, name, size - over)
            if over <= 0:
                read_cassette(data)
            else:
                with pytest.raises(CassetteError, match="bytes"):
                    read_cassette(data)
