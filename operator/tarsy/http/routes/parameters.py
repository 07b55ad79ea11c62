"""Declares parameters that several routes share, with their limits.

Decision: every list has a limit and a `continue` token, and every text a maximum length, so that every response is
bounded.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints

from tarsy.http.models import Query
from tarsy.plan.cron_times import named_zone
from tarsy.resources.schema import LabelName, ObjectName

MAX_LIMIT: Final = 200
MAX_NAMESPACES: Final = 20
MAX_TOKEN: Final = 1024
_RFC3339 = re.compile(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1970, 2999

Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Maximum number of items. A page may contain fewer.")]
Token = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TOKEN, pattern=r"^[A-Za-z0-9_-]+$"),
    Field(description="The `continue` of the previous page. All other parameters must be unchanged."),
]
Namespaces = Annotated[
    tuple[LabelName, ...],
    Field(max_length=MAX_NAMESPACES, description="Only this namespace. Repeatable. All namespaces when omitted."),
]


def _written_as_time(value: Any) -> Any:
    if isinstance(value, str) and not _RFC3339.match(value):
        raise ValueError("must be a time with a time zone, such as 2026-11-22T12:00:00Z")
    return value


def _within_years(value: datetime) -> datetime:
    if not _FIRST_YEAR < value.year < _LAST_YEAR:
        raise ValueError(f"must be between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written_as_time), AfterValidator(_within_years)]


def _known_zone(value: str) -> str:
    named_zone(value)
    return value


TimeZone = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    AfterValidator(_known_zone),
    Field(description="Time zone in which days begin: an IANA name such as Europe/Berlin, or UTC."),
]


class ListQuery(Query):
    """Namespaces, and page of a list of objects."""

    namespace: Namespaces = ()
    limit: Limit = 100
    token: Token | None = Field(default=None, alias="continue")


class RunQuery(Query):
    """Selects one of several runs of the same name, or the answer to a question."""

    uid: UUID | None = Field(
        default=None, description="Uid of an older investigation of this name. The latest one when omitted."
    )
    chat_message: ObjectName | None = Field(
        default=None, description="Name of a ChatMessage: return the run of its answer instead of the investigation."
    )
