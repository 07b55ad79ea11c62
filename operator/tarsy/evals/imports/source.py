"""Defines what parsers of foreign cases read and return."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tarsy.evals.cassette import Cassette
from tarsy.resources.v1alpha1.expectation import Expectation


class ImportProblem(ValueError):
    """A case that cannot be imported; the message names file, field and remedy."""


class CaseFolder(Protocol):
    """The folder of a case. Its files come from outside: sizes and depth are bounded, links are not followed."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the files in it, sorted."""
        ...

    def text(self, name: str) -> str:
        """Returns a file as text."""
        ...

    def json(self, name: str) -> Mapping[str, Any]:
        """Returns a file that is a JSON object."""
        ...

    def yaml(self, name: str) -> Mapping[str, Any]:
        """Returns a file that is a YAML mapping."""
        ...

    def rows(self, name: str) -> Iterator[Mapping[str, str]]:
        """Yields the rows of a file of tab-separated values, whose first line names the columns."""
        ...

    def beside(self, name: str) -> "CaseFolder":
        """Returns a folder beside this one, within the imported folder."""
        ...

    def wrong(self, name: str, field: str, remedy: str) -> ImportProblem:
        """Returns the error of a field of a file."""
        ...


@dataclass(frozen=True, slots=True)
class ForeignCase:
    """A case of a benchmark, as TARSy measures it.

    Attributes:
        cassette: its recorded world.
        expect: what can be checked without a model.
        remarks: what its benchmark expects in prose, and what could not be taken over.
    """

    cassette: Cassette
    expect: Expectation
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseFormat:
    """A format of cases.

    Attributes:
        name: as the command names it.
        title: of the benchmark.
        marker: pattern of the file that makes a folder a case.
        read: returns the case of such a file; None: the file is something else.
        server: name of the tool server that the recorded calls belong to, unless the user names another.
    """

    name: str
    title: str
    marker: str
    read: Callable[[CaseFolder, str, str], ForeignCase | None]
    server: str
