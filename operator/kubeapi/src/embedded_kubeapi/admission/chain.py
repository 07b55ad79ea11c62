"""Defines the admission protocol and the chain that calls admission plug-ins in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from embedded_kubeapi.call import Call
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.resource import Resource

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True)
class Review:
    """A write under review; `obj` is None for a deletion, `old` is None for a creation."""

    call: Call
    operation: Operation
    resource: Resource
    namespace: str
    name: str
    obj: Obj | None
    old: Obj | None
    subresource: str = ""
    options: Obj = field(default_factory=dict)


class Admission(Protocol):
    """An admission plug-in; an ApiError that it raises refuses the write."""

    async def mutate(self, review: Review) -> Obj | None:
        """Returns the object to store; must not change `review.obj` itself."""
        ...

    async def validate(self, review: Review) -> None:
        """Raises ApiError to refuse the write."""
        ...


class Chain:
    """Calls several plug-ins in order."""

    def __init__(self, judges: Sequence[Admission] = ()) -> None:
        self.judges = list(judges)

    async def mutate(self, review: Review) -> Obj | None:
        obj = review.obj
        for judge in self.judges:
            obj = await judge.mutate(_with(review, obj))
        return obj

    async def validate(self, review: Review) -> None:
        for judge in self.judges:
            await judge.validate(review)


def _with(review: Review, obj: Obj | None) -> Review:
    if obj is review.obj:
        return review
    return Review(
        review.call, review.operation, review.resource, review.namespace, review.name, obj, review.old,
        review.subresource, review.options,
    )  # fmt: skip
