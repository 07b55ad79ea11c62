"""Models of InvestigationQuotas: limits, and usage in the current period."""

from datetime import datetime
from typing import Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE
from tarsy.http.views.configuration import ConfiguredView, configured_fields
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import InvestigationQuota
from tarsy.resources.v1alpha1.common import ConditionType


class QuotaLimitView(View):
    """One limit of a quota, in US dollars, tokens or investigations."""

    name: str = Field(description="dollars, tokens or investigations.")
    hard: float = Field(description="The limit.")
    spent: float = Field(description="Used in the current period.")
    reserved: float = Field(description="Worst case of the model calls that are under way. 0 for investigations.")


class QuotaView(ConfiguredView):
    """An InvestigationQuota."""

    period: str = Field(description="Hour, Day, Week or Month, in UTC.")
    on_exceeded: str = Field(description="Queue, Reject or TriageOnly.")
    warn_at: int = Field(description="Percent of a limit at which it warns.")
    limits: tuple[QuotaLimitView, ...] = Field(description="Each limit with its use. Empty before the first look.")
    starts: datetime | None = Field(description="Start of the current period.")
    ends: datetime | None = Field(description="End of the current period.")
    warned: bool = Field(description="Whether the percentage for a warning is reached.")
    exceeded: bool = Field(description="Whether a limit is exhausted.")
    refusals: int = Field(description="Model calls that were not made in the current period because they did not fit.")

    @classmethod
    def of(cls, found: InvestigationQuota) -> Self:
        """Converts an InvestigationQuota."""
        spec, status = found.spec, found.status
        return cls(
            **configured_fields(found),
            period=spec.period,
            on_exceeded=spec.on_exceeded,
            warn_at=spec.warn_at,
            limits=_limits(found),
            starts=status.period_start,
            ends=status.period_end,
            warned=_is_true(found, ConditionType.WARNED),
            exceeded=_is_true(found, ConditionType.EXCEEDED),
            refusals=status.refusals or 0,
        )


class QuotaList(View):
    """InvestigationQuotas, sorted by namespace and name."""

    items: tuple[QuotaView, ...]
    next: str | None = Field(alias="continue", default=None, description=NEXT_PAGE)


def _limits(found: InvestigationQuota) -> tuple[QuotaLimitView, ...]:
    hard, spent, reserved = found.status.hard, found.status.spent, found.status.reserved
    if hard is None or spent is None or reserved is None:
        return ()
    told = (
        ("dollars", hard.dollars, spent.dollars, reserved.dollars),
        ("tokens", hard.tokens, spent.tokens, reserved.tokens),
        ("investigations", hard.investigations, spent.investigations, 0),
    )
    return tuple(
        QuotaLimitView(name=name, hard=float(limit), spent=float(used), reserved=float(held))
        for name, limit, used, held in told
        if limit is not None
    )


def _is_true(found: InvestigationQuota, kind: ConditionType) -> bool:
    one = condition(found.status.conditions, kind)
    return one is not None and one.status == "True"
