"""Models of requests without a record: alerts without a run, and runs that were not accepted."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE


class UnstartedItem(View):
    """An Alert without an Investigation, or an Investigation that is not accepted."""

    kind: Literal["Alert", "Investigation"]
    namespace: str
    name: str
    uid: str
    alert_type: str | None = Field(description="Null where the Investigation takes it from an Alert.")
    severity: str | None
    phase: str = Field(description="Phase as kubectl shows it: Pending, Waiting, Rejected.")
    reason: str = Field(description="Reason of the condition that says why; empty before the operator looked at it.")
    message: str = Field(description="What is missing, with the remedy; empty before the operator looked at it.")
    author: str | None
    created_at: datetime


class UnstartedPage(View):
    """A page of them, the latest first."""

    items: tuple[UnstartedItem, ...]
    alerts: bool = Field(description="Whether alerts were looked at: the caller may list them.")
    next: str | None = Field(alias="continue", description=NEXT_PAGE)
