"""The steps of a search on the event loop, and in a thread where they would hold it up."""

import threading
import time

import pytest

from tarsy.engine.provenance.readings import longest_reading, plain_reading
from tarsy.engine.provenance.turns import LONGEST_STEP, LONGEST_TURN, Step, take_steps


@pytest.mark.parametrize(("most", "on_loop"), [(LONGEST_STEP - 1, 3), (LONGEST_STEP, 3), (LONGEST_STEP + 1, 1)])
async def test_a_long_step_and_all_after_it_are_taken_in_a_thread(most: float, on_loop: int) -> None:
    taken: list[tuple[int, int]] = []

    def step(number: int, microseconds: float) -> Step:
        return microseconds, lambda: taken.append((number, threading.get_ident()))

    await take_steps([step(1, 1.0), step(2, most), step(3, 1.0)])

    assert [number for number, _ in taken] == [1, 2, 3]
    assert sum(thread == threading.get_ident() for _, thread in taken) == on_loop


async def test_steps_that_take_too_long_together_go_on_in_a_thread() -> None:
    taken: list[int] = []

    def spend() -> None:
        until = time.perf_counter() + LONGEST_TURN
        while time.perf_counter() <= until:
            pass
        taken.append(threading.get_ident())

    await take_steps([(1.0, spend), (1.0, spend)])

    assert taken[0] == threading.get_ident() != taken[1]


async def test_the_error_of_a_step_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    for microseconds in (0.0, LONGEST_STEP + 1):
        with pytest.raises(ValueError, match="no"):
            await take_steps([(microseconds, fail)])


@pytest.mark.parametrize("text", ["", "a pod", "é…", "\ufdfa" * 9, "Ａ", "\ufb03", "\u3300", "😀"])
def test_no_form_is_longer_than_its_bound(text: str) -> None:
    assert len(plain_reading(text)) <= longest_reading(text)
