"""Parameters that several routes take, with their limits.

Decision: every list has a limit and a token for what comes next, and every text a length, so that no question can be
asked whose answer has no bound.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints

from tarsy.http.route import Query
from tarsy.resources.schema import LabelName, ObjectName

MAX_LIMIT: Final = 200
MAX_NAMESPACES: Final = 20
MAX_TOKEN: Final = 1024
_RFC3339 = re.compile(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1970, 2999

Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Items at most; there may be fewer on a page.")]
Token = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TOKEN, pattern=r"^[A-Za-z0-9_-]+$"),
    Field(description="The `continue` of the page before; all other parameters must be as they were."),
]
Namespaces = Annotated[
    tuple[LabelName, ...],
    Field(max_length=MAX_NAMESPACES, description="Only in this one; may be given several times. None: in all of them."),
]


def _written_as_time(value: Any) -> Any:
    if isinstance(value, str) and not _RFC3339.match(value):
        raise ValueError("must be a time with its zone, such as 2026-11-22T12:00:00Z")
    return value


def _within_years(value: datetime) -> datetime:
    if not _FIRST_YEAR < value.year < _LAST_YEAR:
        raise ValueError(f"must be between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written_as_time), AfterValidator(_within_years)]


class ListQuery(Query):
    """What a list of objects takes."""

    namespace: Namespaces = ()
    limit: Limit = 100
    token: Token | None = Field(default=None, alias="continue")


class RunQuery(Query):
    """Which run of a name, or which answer to a question about it."""

    uid: UUID | None = Field(
        default=None, description="An older investigation of that name; the latest when not given."
    )
    chat_message: ObjectName | None = Field(
        default=None, description="The answer to the question of that name, instead of the investigation."
    )
