"""Tests that text of models is batched, packed, and sent only while a reader follows the run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID, uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from tarsy.stream import deltas as module
from tarsy.stream.deltas import MAX_PAYLOAD, MAX_TEXT, Delta, Deltas, RunDeltas, pack, run_of_payload, unpack
from tarsy.stream.follow_requests import Following, read_follow

RUN, EVENT = UUID(int=1), UUID(int=2)


class Plain:
    """Shows all."""

    def __init__(self) -> None:
        self.stopped = False

    def add(self, text: str) -> str:
        return text


class Stops(Plain):
    """Shows nothing from the word `stop` on."""

    def add(self, text: str) -> str:
        self.stopped = "stop" in text
        return text.partition("stop")[0]


class Wire:
    """What is sent, and what is said on the channel of those who follow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self.told: Callable[[str], None] = lambda _: None
        self.now = 0.0

        async def call(_pool: object, _what: str, action: Callable[["Wire"], object]) -> None:
            await action(self)  # type: ignore[misc]

        monkeypatch.setattr(module, "call", call)

    async def execute(self, _statement: str, channel: str, payloads: list[str]) -> None:
        assert channel == "tarsy_delta"
        self.sent += payloads

    @contextmanager
    def hear(self, channel: str, told: Callable[[str], None]) -> Iterator[None]:
        assert channel == "tarsy_follow"
        self.told = told
        yield

    def deltas(self) -> list[Delta]:
        return [delta for payload in self.sent for delta in unpack(payload)]

    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas())

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire(monkeypatch)


@asynccontextmanager
async def speaking(wire: Wire, words: Callable[[], Plain] = Plain) -> AsyncIterator[RunDeltas]:
    """A run of a process that tells; a tick is no time."""
    deltas = Deltas(None, wire.hear, tick_seconds=0.0, clock=lambda: wire.now)
    task = asyncio.create_task(deltas.run())
    await wire.settle()
    with deltas.of(RUN, words) as mine:
        yield mine
    task.cancel()
    await asyncio.wait([task])


async def test_nothing_is_sent_where_nobody_reads_along(wire: Wire) -> None:
    async with speaking(wire) as run:
        pieces = ["a"]
        run.began(EVENT, pieces)
        for _ in range(100):
            pieces.append("b")
            run.grew(EVENT)
        await wire.settle()
        wire.told(str(uuid4()))
        run.grew(EVENT)
        await wire.settle()
    assert wire.sent == []


async def test_who_comes_in_the_middle_is_told_the_text_from_its_beginning(wire: Wire) -> None:
    async with speaking(wire) as run:
        pieces = ["The pod ", "restarts "]
        run.began(EVENT, pieces)
        wire.told(str(RUN))
        await wire.settle()
        assert wire.deltas() == [Delta(EVENT, 0, "The pod restarts ")]
        pieces.append("often")
        run.grew(EVENT)
        await wire.settle()
        assert wire.deltas()[1:] == [Delta(EVENT, 17, "often")]


async def test_the_engine_is_told_when_a_run_without_followers_gets_one(wire: Wire) -> None:
    told: list[bool] = []
    async with speaking(wire) as run:
        with run.when_followed(lambda: told.append(run.followed)):
            wire.told(str(uuid4()))
            assert told == []
            wire.told(str(RUN))
            wire.told(f"{RUN} anew")
            assert told == [True], "it is followed already"
            wire.now += 31.0
            wire.told(str(RUN))
            assert told == [True, True], "nobody followed it meanwhile"
            wire.now += 31.0
        wire.told(str(RUN))
    assert told == [True, True]


async def test_what_comes_between_two_ticks_is_one_message(wire: Wire) -> None:
    async with speaking(wire) as run:
        wire.told(str(RUN))
        pieces: list[str] = []
        run.began(EVENT, pieces)
        for number in range(50):
            pieces.append(str(number))
            run.grew(EVENT)
        await wire.settle()
    assert len(wire.sent) == 1


async def test_who_needs_it_anew_is_told_all_of_it_again(wire: Wire) -> None:
    async with speaking(wire) as run:
        pieces = ["one "]
        run.began(EVENT, pieces)
        wire.told(str(RUN))
        await wire.settle()
        wire.told(f"{RUN} anew")
        pieces.append("two ")
        run.grew(EVENT)
        await wire.settle()
    assert wire.deltas() == [Delta(EVENT, 0, "one "), Delta(EVENT, 0, "one two ")]


async def test_who_is_not_heard_of_again_is_forgotten(wire: Wire) -> None:
    async with speaking(wire) as run:
        pieces = ["one "]
        wire.told(str(RUN))
        run.began(EVENT, pieces)
        await wire.settle()
        wire.now = 31.0
        for word in ("two ", "three "):
            pieces.append(word)
            run.grew(EVENT)
            await wire.settle()
        assert wire.text() == "one "
        wire.told(str(RUN))
        await wire.settle()
    assert wire.deltas()[-1] == Delta(EVENT, 0, "one two three ")


async def test_text_that_may_not_be_shown_further_says_so_once(wire: Wire) -> None:
    async with speaking(wire, Stops) as run:
        wire.told(str(RUN))
        pieces = ["fine stop secret"]
        run.began(EVENT, pieces)
        await wire.settle()
        pieces.append("more")
        run.grew(EVENT)
        await wire.settle()
    assert wire.deltas() == [Delta(EVENT, 0, "fine "), Delta(EVENT, 5, "", truncated=True)]


async def test_a_very_long_text_ends_before_it_is_closed(wire: Wire) -> None:
    async with speaking(wire) as run:
        wire.told(str(RUN))
        run.began(EVENT, ["x" * (MAX_TEXT + 5)])
        await wire.settle()
    assert wire.text() == "x" * MAX_TEXT
    assert [delta.truncated for delta in wire.deltas()] == [False] * (len(wire.deltas()) - 1) + [True]


async def test_text_that_has_ended_is_told_no_more(wire: Wire) -> None:
    async with speaking(wire) as run:
        wire.told(str(RUN))
        run.began(EVENT, ["late"])
        run.ended(EVENT)
        run.grew(EVENT)
        await wire.settle()
    assert wire.sent == []


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=3_000), max_size=8))
@examples(40)
def test_no_payload_is_too_long_and_nothing_is_lost(texts: list[str]) -> None:
    deltas = [Delta(uuid4(), 0, text[place : place + 1_900]) for text in texts for place in range(0, len(text), 1_900)]
    deltas = [delta for delta in deltas if len(orjson.dumps(delta.text)) < MAX_PAYLOAD - 150]  # no control characters
    payloads = list(pack(RUN, deltas))
    assert [delta for payload in payloads for delta in unpack(payload)] == deltas
    assert all(len(payload.encode()) <= MAX_PAYLOAD for payload in payloads)
    assert {run_of_payload(payload) for payload in payloads} <= {str(RUN)}


@pytest.mark.parametrize("letter", ["é", "漢", "🙂", '"', "\n"])
async def test_every_piece_fits_whatever_its_letters_are(wire: Wire, letter: str) -> None:
    async with speaking(wire) as run:
        wire.told(str(RUN))
        run.began(EVENT, [letter * 10_000])
        await wire.settle()
    assert wire.text() == letter * 10_000
    assert max(len(payload.encode()) for payload in wire.sent) <= MAX_PAYLOAD


@pytest.mark.parametrize(
    "payload", [f"{RUN}", f"{RUN}nothing", f'{RUN}[["x"]]', f"{RUN}[[1,2,3,4]]", f'{RUN}{{"a":1}}']
)
def test_payload_of_another_version_is_passed_over(payload: str) -> None:
    assert unpack(payload) == []


def test_follow_names_a_run_and_whether_its_texts_are_wanted_anew() -> None:
    assert read_follow(str(RUN)) == (RUN, False)
    assert read_follow(f"{RUN} anew") == (RUN, True)
    assert read_follow("") is None


async def test_followed_runs_are_told_again_and_again_until_nobody_follows() -> None:
    told: list[str] = []
    following = Following(lambda _, payload: told.append(payload), again_seconds=0.0)
    following.begin(RUN)
    following.begin(RUN)
    assert told == [f"{RUN} anew"]
    task = asyncio.create_task(following.run())
    for _ in range(5):
        await asyncio.sleep(0)
    assert told.count(str(RUN)) > 1
    following.end(RUN)
    following.end(RUN)
    told.clear()
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert told == []


def test_delta_keeps_whose_event_it_is() -> None:
    (payload,) = pack(RUN, [Delta(EVENT, 3, "word", truncated=True)])
    assert unpack(payload) == [Delta(UUID(str(EVENT)), 3, "word", truncated=True)]
