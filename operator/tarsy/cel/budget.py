"""Limits the cost of an evaluation: one unit per item that a macro visits, more for large values.

Kubernetes stops a rule at a million of its units, and all rules of an object at ten million, about a tenth of a second
and a second there (kubernetes.io/docs/reference/using-api/cel, "Resource constraints"). Ours are larger units, chosen
to stop at about the same times here. A deadline stops an evaluation on a machine that is slower than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .errors import CelCostError, CelError

PER_EXPRESSION = 200_000
PER_OBJECT = 500_000
IN_SCOPE = "\0budget"  # among an evaluation's variables, where no expression can name it
_TEXT_PER_UNIT = 16


class CostBudget:
    """The remaining cost budget; a nested budget also spends its parent's.

    Args:
        limit: units.
        whole: budget that this one is a part of.
        seconds: time limit, checked each time units are spent; None: no limit.
        clock: returns monotonic seconds.
    """

    __slots__ = ("_clock", "_until", "_whole", "left")

    def __init__(
        self,
        limit: int,
        whole: CostBudget | None = None,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.left = limit
        self._whole = whole
        self._clock = clock
        self._until = None if seconds is None else clock() + seconds

    def part(self) -> CostBudget:
        """Returns the budget of one expression."""
        return CostBudget(PER_EXPRESSION, self)

    def spend(self, units: int) -> None:
        """Spends units.

        Raises:
            CelCostError: there are not so many left, or the time is over.
        """
        if self._until is not None and self._clock() > self._until:
            raise CelCostError("operation cancelled: time limit exceeded")
        self.left -= units
        if self._whole is not None:
            self._whole.left -= units
        if self.left < 0 or (self._whole is not None and self._whole.left < 0):
            raise CelCostError("operation cancelled: actual cost limit exceeded")

    def spend_on(self, *values: Any) -> None:
        """Spends units for reading values, at any depth.

        Raises:
            CelCostError: they are too large.
        """
        for value in values:
            if isinstance(value, (str, bytes)):
                self.spend(len(value) // _TEXT_PER_UNIT)
            elif isinstance(value, (list, dict)):
                self._count(value)

    def _count(self, value: Any) -> None:
        waiting = [value]
        while waiting:  # a value may hold another many times over: the count itself must end
            inside = waiting.pop()
            items = inside.values() if isinstance(inside, dict) else inside
            self.spend(1 + len(inside))
            for item in items:
                if isinstance(item, (list, dict)):
                    waiting.append(item)
                elif isinstance(item, (str, bytes)) and len(item) >= _TEXT_PER_UNIT:
                    self.spend(len(item) // _TEXT_PER_UNIT)


def _replace(budget: CostBudget, values: list[Any]) -> None:
    text, old, new = (value if isinstance(value, str) else "" for value in values[:3])
    budget.spend_on(text)
    budget.spend(text.count(old) * len(new) // _TEXT_PER_UNIT)


def _range(budget: CostBudget, values: list[Any]) -> None:
    budget.spend(max(0, values[0]) if isinstance(values[0], int) else 0)


def _join(budget: CostBudget, values: list[Any]) -> None:
    budget.spend_on(*values)
    if len(values) > 1 and isinstance(values[1], str):
        budget.spend(len(values[0]) * len(values[1]) // _TEXT_PER_UNIT)


def _pairs(budget: CostBudget, values: list[Any]) -> None:
    budget.spend_on(*values)
    sizes = [len(value) for value in values if isinstance(value, (list, str, bytes))]
    units = sizes[0] * sizes[-1] if sizes else 0
    budget.spend(units if isinstance(values[0], list) else units // 1000)


def _one(budget: CostBudget, values: list[Any]) -> None:
    budget.spend(1)


# Functions whose cost is not that of reading their arguments.
_COSTS: dict[str, Callable[[CostBudget, list[Any]], None]] = {
    "size": _one, "dyn": _one, "type": _one, "replace": _replace, "lists.range": _range, "join": _join,
    **dict.fromkeys(("distinct", "sets.contains", "sets.intersects", "sets.equivalent", "lastIndexOf"), _pairs),
}  # fmt: skip


def charged(name: str, function: Callable[..., Any]) -> Callable[[CostBudget, list[Any]], Any]:
    """Wraps a library function so that its cost is spent before it runs and its failures become expression errors."""
    cost = _COSTS.get(name)

    def call(budget: CostBudget, values: list[Any]) -> Any:
        if cost is None:
            budget.spend(1)
            budget.spend_on(*values)
        else:
            cost(budget, values)
        try:
            return function(*values)
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
            raise CelError(f"no such overload: {name}: {error}") from error

    return call
