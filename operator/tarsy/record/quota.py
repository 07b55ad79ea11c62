"""Defines what a namespace's quota allows, and the refusal of a run or of a model call that does not fit.

The arithmetic is in Postgres (migration 39), where all workers meet; here are its words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Self

Period = Literal["hour", "day", "week", "month"]
OnExceeded = Literal["Queue", "Reject", "TriageOnly"]
SHARES = ("questions", "replays", "schedules")
"""Work that may use a part of a quota only."""

_EVERY: Mapping[Period, str] = {"hour": "an hour", "day": "a day", "week": "a week", "month": "a month"}

QUOTA_EXCEEDED = "QuotaExceeded"
"""Reason of a run that a quota ended."""


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The limits of an InvestigationQuota; None is no limit.

    `shares` are percent of each limit, by kind of work; one that is not named may use all.
    """

    period: Period
    cost_usd: Decimal | None = None
    tokens: int | None = None
    investigations: int | None = None
    on_exceeded: OnExceeded = "Queue"
    shares: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """Holds the usage that counts against a quota in a period: `spent`, and `reserved` by model calls that have not "
    "ended.

    `generation` is that of the limits in force. `exceeded` names the limit that has no room for another run, or for the
    smallest call that was refused; None: there is room.
    """

    generation: int
    starts_at: datetime
    ends_at: datetime
    spent_usd: Decimal = Decimal(0)
    spent_tokens: int = 0
    reserved_usd: Decimal = Decimal(0)
    reserved_tokens: int = 0
    investigations: int = 0
    refusals: int = 0
    exceeded: str | None = None


@dataclass(frozen=True, slots=True)
class QuotaRefusal:
    """A limit of a quota that leaves no room.

    `limit` is dollars, tokens, investigations or price (the cost of a call is not known). `need` is the worst case of
    the call, None for a run; `used` is what is spent and reserved, `share` the kind of work whose part is used up.
    """

    uid: str
    name: str
    period: Period
    on_exceeded: OnExceeded
    limit: str
    share: str
    starts_at: datetime
    ends_at: datetime
    hard: Decimal
    used: Decimal | None = None
    need: Decimal | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Reads a refusal as Postgres tells it."""
        return cls(
            **{name: values[name] for name in ("uid", "name", "period", "on_exceeded", "limit", "share")},
            starts_at=datetime.fromisoformat(values["starts_at"]),
            ends_at=datetime.fromisoformat(values["ends_at"]),
            hard=Decimal(str(values["hard"])),
            used=_number(values["used"]),
            need=_number(values["need"]),
        )

    @property
    def fits_never(self) -> bool:
        """Whether no later period has room either."""
        return self.limit == "price" or (self.need is not None and self.need > self.hard)

    @property
    def cause(self) -> str:
        """A sentence with the figures."""
        quota = f"InvestigationQuota {self.name}"
        if self.limit == "price":
            return f"{quota} limits dollars, and the cost of this call is not known: its LLMProvider declares no rates."
        whose = "" if self.share == "all" else f"{self.share} "
        allowed = f"{quota} allows {whose}{_amount(self.limit, self.hard)} {_EVERY[self.period]}"
        if self.limit == "investigations":
            return f"{allowed}, and {self.used or 0:,f} {'has' if self.used == 1 else 'have'} started."
        used = _amount(self.limit, self.used or Decimal(0))
        if self.need is None:
            return f"{allowed}, and {used} are spent or reserved: too few for another call."
        return f"{allowed}, {used} are spent or reserved, and this call may need {_amount(self.limit, self.need)}."

    @property
    def remedy(self) -> str:
        """A sentence with what can be done."""
        if self.limit == "price":
            return "Set spec.rates of the LLMProvider, or remove hard.dollars from the quota."
        if self.fits_never:
            return f"Raise hard.{self.limit} of the quota, or lower maxOutputTokens of the LLMProvider."
        later = f"The next period begins at {self.ends_at:%Y-%m-%d %H:%M} UTC"
        return f"{later}; hard.{self.limit} of the quota can be raised."


class QuotaRefused(Exception):
    """A model call was not begun, because a quota of its namespace has no room for its worst case."""

    def __init__(self, refusal: QuotaRefusal) -> None:
        super().__init__(f"{refusal.cause} {refusal.remedy}")
        self.refusal = refusal


def _number(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def _amount(limit: str, value: Decimal) -> str:
    if limit == "dollars":
        return f"US$ {value.normalize():f}"
    return f"{value:,f} {limit.removesuffix('s') if value == 1 else limit}"
