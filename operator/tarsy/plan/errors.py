"""Defines the errors of a plan: the object, the field, and a sentence with the remedy.

Decision: a location is a value (`FieldPath`) that is passed down while objects are walked, so a check never builds a
path out of text, and the same mistake found in two ways is one error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tarsy.resources.meta import AnyResource


@dataclass(frozen=True, slots=True)
class PlanError:
    """An error in one field of one object (an empty `name`: an object that has no name yet)."""

    kind: str
    namespace: str
    name: str
    field: str
    message: str

    def __str__(self) -> str:
        named = f"{self.kind} {self.namespace}/{self.name}" if self.name else f"{self.kind} in {self.namespace}"
        return f"{named}: {self.field}: {self.message}"


class PlanInvalid(ValueError):
    """Raised with every mistake of a plan at once."""

    def __init__(self, errors: Iterable[PlanError]) -> None:
        self.errors: tuple[PlanError, ...] = tuple(dict.fromkeys(errors))
        super().__init__("; ".join(str(error) for error in self.errors))


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field of an object, in the JSON names of the API."""

    kind: str
    namespace: str
    name: str
    path: str = "spec"

    @classmethod
    def of(cls, obj: AnyResource) -> FieldPath:
        """The spec of `obj`."""
        return cls(obj.KIND, obj.metadata.namespace, obj.metadata.name)

    def __getitem__(self, index: int) -> FieldPath:
        return replace(self, path=f"{self.path}[{index}]")

    def __truediv__(self, field: str) -> FieldPath:
        return replace(self, path=f"{self.path}.{field}")

    def error(self, message: str) -> PlanError:
        """Returns an error in this field."""
        return PlanError(self.kind, self.namespace, self.name, self.path, message)
