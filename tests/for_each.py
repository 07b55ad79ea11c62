"""Runs a test for many cases at once: `@for_each` takes what `pytest.mark.parametrize` takes.

Decision: a table of dozens of cases that are one sentence about other values is one test. pytest spends three
milliseconds of a core on each test, whatever it does, and such tables were a third of all tests. A failure names every
case that failed, with its error. A case that needs fixtures of its own, or a name to be run by, is parametrized.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from _pytest.mark.structures import ParameterSet

_Test = Callable[..., None]


class CasesFailed(ExceptionGroup[Exception]):
    """Some cases of a test failed; each error has the name of its case as a note."""


def for_each(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[str] | None = None,
) -> Callable[[_Test], _Test]:
    """Returns a decorator that makes one test of all cases.

    Args:
        names: of the parameters, with commas between them or one by one.
        values: the cases: a value each, or with several names a tuple.
        ids: names of the cases, or makes the name of a value; None: its representation.
    """
    asked = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(_named(values, ids, single=len(asked) == 1))

    def decorate(test: _Test) -> _Test:
        signature = inspect.signature(test)
        missing = set(asked) - set(signature.parameters)
        if inspect.iscoroutinefunction(test) or missing or not cases:
            raise TypeError(f"{test.__name__} is a coroutine, has no case, or lacks parameters: {sorted(missing)}")

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for name, case in cases:
                try:
                    test(**dict(zip(asked, case, strict=True)), **fixtures)
                except Exception as error:
                    error.add_note(f"case: {name}")
                    failed.append(error)
            if failed:
                raise CasesFailed(f"{len(failed)} of {len(cases)} cases", failed)

        left = [one for one in signature.parameters.values() if one.name not in asked]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def _named(
    values: Iterable[Any], ids: Callable[[Any], object] | Iterable[str] | None, *, single: bool
) -> Iterator[tuple[str, Sequence[Any]]]:
    listed = [] if ids is None or callable(ids) else list(ids)
    for number, value in enumerate(values):
        of_its_own = value.id if isinstance(value, ParameterSet) else None
        case = tuple(value.values) if isinstance(value, ParameterSet) else (value,) if single else tuple(value)
        if isinstance(value, ParameterSet) and value.marks:
            raise TypeError(f"case {number} has marks, which only a test of its own can have")
        if of_its_own is not None:
            name = str(of_its_own)
        elif ids is None:
            name = ", ".join(map(repr, case))
        else:
            name = ", ".join(str(ids(part)) for part in case) if callable(ids) else listed[number]
        yield name, case


__all__ = ["CasesFailed", "for_each"]
