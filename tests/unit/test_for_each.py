"""Tests `for_each`: all cases are run, and each one that fails is named."""

import pytest

from for_each import CasesFailed, for_each


def test_every_case_is_run_although_one_fails() -> None:
    seen: list[int] = []

    @for_each("number", [1, 2, 3], ids=lambda number: f"number {number}")
    def check(number: int) -> None:
        seen.append(number)
        assert number != 2

    with pytest.raises(CasesFailed, match="1 of 3 cases") as raised:
        check()
    assert seen == [1, 2, 3]
    (error,) = raised.value.exceptions
    assert isinstance(error, AssertionError) and error.__notes__ == ["case: number 2"]


def test_fixtures_stay_and_decorators_multiply() -> None:
    seen: list[tuple[int, str, str]] = []

    @for_each("a", [1, pytest.param(2, id="two")])
    @for_each(("b", "c"), [("x", "y")], ids=["only"])
    def check(fixture: list[tuple[int, str, str]], a: int, b: str, c: str) -> None:
        fixture.append((a, b, c))

    check(fixture=seen)
    assert seen == [(1, "x", "y"), (2, "x", "y")]


@for_each("names", ["absent", "a, absent"])
def test_a_parameter_that_the_test_has_not_is_refused(names: str) -> None:
    with pytest.raises(TypeError, match="absent"):

        @for_each(names, [(1, 2)])
        def check(a: int) -> None: ...


def test_a_test_without_cases_is_refused_as_a_coroutine_is() -> None:
    with pytest.raises(TypeError, match="has no case"):

        @for_each("a", [])
        def check(a: int) -> None: ...

    async def wait(a: int) -> None: ...

    with pytest.raises(TypeError, match="coroutine"):
        for_each("a", [1])(wait)  # type: ignore[arg-type]


def test_a_case_with_a_mark_is_refused() -> None:
    with pytest.raises(TypeError, match="marks"):
        for_each("a", [pytest.param(1, marks=pytest.mark.skip)])
