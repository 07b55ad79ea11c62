"""Models of the activity of configuration objects in recorded runs."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.record.reading.object_health import HourOfObject, RunOfObject


class HourView(View):
    """Successes and failures of calls or runs that began within an hour."""

    hours_ago: int = Field(description="0 is the hour until now.")
    succeeded: int
    failed: int


class ObjectActivity(View):
    """Calls of an LLMProvider or MCPServer, executions of an Agent or runs of a Chain."""

    kind: str
    namespace: str
    name: str
    hours: tuple[HourView, ...] = Field(description="Hours with at least one, the oldest first.")


class ActivityView(View):
    """Activity of configuration objects in the last hours, in the runs that the caller may list."""

    hours: int
    items: tuple[ObjectActivity, ...]

    @classmethod
    def of(cls, hours: int, found: Iterable[HourOfObject]) -> Self:
        """Groups hours by object.

        Args:
            hours: length of the period.
            found: the hours, the oldest of each object first.
        """
        by: defaultdict[tuple[str, str, str], list[HourView]] = defaultdict(list)
        for one in found:
            view = HourView(hours_ago=one.hour, succeeded=one.succeeded, failed=one.failed)
            by[one.kind, one.namespace, one.name].append(view)
        items = (ObjectActivity(kind=k, namespace=at, name=n, hours=tuple(told)) for (k, at, n), told in by.items())
        return cls(hours=hours, items=tuple(items))


class ObjectRunView(View):
    """An investigation that was planned from an object."""

    namespace: str
    name: str
    uid: UUID
    chain: str
    chain_namespace: str
    state: str
    accepted_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, run: RunOfObject) -> Self:
        """Converts a recorded run."""
        return cls(
            namespace=run.namespace,
            name=run.name,
            uid=run.id,
            chain=run.chain,
            chain_namespace=run.chain_namespace,
            state=run.state,
            accepted_at=run.accepted_at,
            finished_at=run.finished_at,
        )


class ObjectRunList(View):
    """Investigations that were planned from an object, the latest first."""

    items: tuple[ObjectRunView, ...]
