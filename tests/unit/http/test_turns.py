"""Tests fair scheduling: slots go to the namespace that holds the fewest."""

import asyncio

import pytest

from tarsy.http.errors import Unavailable
from tarsy.http.intake.turns import Turns


class House:
    """Who has a place, in the order in which they came in."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.inside: list[str] = []
        self.came: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def ask(self, name: str) -> asyncio.Task[None]:
        self.gates[name] = asyncio.Event()
        return asyncio.create_task(self._stay(name))

    async def _stay(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.came.append(name)
            self.inside.append(name)
            try:
                await self.gates[name].wait()
            finally:
                self.inside.remove(name)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("asked", "inside"), [(2, 2), (3, 3), (4, 3)])
async def test_namespace_has_its_limit(asked: int, inside: int) -> None:
    house = House(Turns(10, 3))
    tasks = [house.ask(f"a{n}") for n in range(asked)]
    await settle()
    assert len(house.inside) == inside
    await end(tasks)


@pytest.mark.parametrize(("asked", "inside"), [(2, 2), (3, 3), (4, 3)])
async def test_all_have_one(asked: int, inside: int) -> None:
    house = House(Turns(3, 3))
    tasks = [house.ask(f"{name}1") for name in "abcd"[:asked]]
    await settle()
    assert len(house.inside) == inside
    await end(tasks)


async def test_free_place_goes_to_the_namespace_with_the_fewest() -> None:
    house = House(Turns(2, 2))
    tasks = [house.ask(f"a{n}") for n in range(6)]
    await settle()
    tasks.append(house.ask("b0"))
    await settle()
    house.gates["a0"].set()
    await settle()
    assert house.came == ["a0", "a1", "b0"]
    house.gates["b0"].set()
    await settle()
    assert house.came == ["a0", "a1", "b0", "a2"]
    await end(tasks)


async def test_who_leaves_the_line_takes_no_place_and_who_leaves_a_place_gives_it_back() -> None:
    house = House(Turns(1, 1))
    first, second, third = house.ask("a0"), house.ask("a1"), house.ask("b0")
    await settle()
    second.cancel()
    await settle()
    first.cancel()
    await settle()
    assert house.inside == ["b0"]
    third.cancel()
    await settle()
    tasks = [house.ask("a2")]
    await settle()
    assert house.inside == ["a2"]
    await end(tasks)


@pytest.mark.parametrize(("asked", "refused"), [(2, False), (3, False), (4, True)])
async def test_oldest_of_a_line_that_is_too_long_is_sent_away(asked: int, refused: bool) -> None:
    house = House(Turns(1, 1, waiting=10, waiting_each=2))
    tasks = [house.ask(f"a{n}") for n in range(asked)]
    await settle()
    assert house.inside == ["a0"]
    assert tasks[1].done() is refused
    if refused:
        with pytest.raises(Unavailable, match="too many notifications"):
            tasks[1].result()
    await end(tasks)


async def test_place_that_comes_as_its_taker_leaves_is_given_on() -> None:
    house = House(Turns(1, 1))
    first, second, third = house.ask("a0"), house.ask("b0"), house.ask("c0")
    await settle()
    house.gates["a0"].set()
    await asyncio.sleep(0)  # a0 has ended, and b0 has been given the place
    second.cancel()
    await settle()
    assert house.inside == ["c0"]
    await end([first, second, third])
