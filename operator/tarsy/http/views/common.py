"""Models that several responses share: usage, failures, conditions, references to runs.

Decision: an unknown amount is null, never zero, and an incomplete sum is marked as incomplete.
"""

from decimal import Decimal
from typing import Final, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.record.run import Failure, OtherRun
from tarsy.record.usage import Usage
from tarsy.resources.meta import Condition, ConditionStatus

STATE: Final = "Current state. kubectl shows pending as Queued, completed as Succeeded, timed_out as TimedOut."
"""Description of the field `state`."""
SHOWN_CONFIDENCE: Final = (
    "Confidence to show to people. If the Chain is not Calibrated, High stands with its count: High (12 of 20 right)."
)
"""Description of the field `shownConfidence`."""
NEWER_WORD: Final = Field(
    union_mode="left_to_right", description="A newer replica may send a word that is not listed here."
)
NEXT_PAGE: Final = "Pass it as `continue` to get the next page. Null on the last page."
"""Description of the field `continue`."""


class Spent(View):
    """Usage of model calls. Output tokens include thinking tokens; input tokens include cached tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    usage_complete: bool = Field(default=True, description="False if the token usage of some calls is unknown.")
    cost_usd: float | None = Field(default=None, alias="costUSD", description="Cost in US dollars. Null if unknown.")
    cost_complete: bool = Field(default=True, description="False if the cost of some calls is unknown.")

    @classmethod
    def of(cls, usage: Usage, cost_usd: Decimal | None, cost_complete: bool) -> Self:
        """Combines token usage and cost.

        Args:
            usage: tokens of the calls.
            cost_usd: US dollars; None if unknown.
            cost_complete: whether the cost of every call is known.
        """
        return cls(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            thinking_tokens=usage.thinking_tokens,
            cached_tokens=usage.cached_tokens,
            total_tokens=usage.total_tokens,
            usage_complete=usage.complete,
            cost_usd=dollars(cost_usd),
            cost_complete=cost_complete,
        )


class OtherRunView(View):
    """Another investigation of the same namespace."""

    name: str
    uid: UUID

    @classmethod
    def of(cls, run: OtherRun | None) -> Self | None:
        """Converts a reference; None without one."""
        return None if run is None else cls(name=run.name, uid=run.id)


class FailureView(View):
    """Reason of a failure."""

    reason: str = Field(description="One CamelCase word, for programs.")
    message: str = Field(description="A sentence, for people.")

    @classmethod
    def of(cls, failure: Failure | None) -> Self | None:
        """Converts a failure; None without one."""
        return None if failure is None else cls(reason=failure.reason, message=failure.message)


class ConditionView(View):
    """A condition, as in the status of Kubernetes objects."""

    type: str
    status: ConditionStatus
    reason: str
    message: str

    @classmethod
    def of(cls, condition: Condition) -> Self:
        """Converts a condition, without its times."""
        return cls(type=condition.type, status=condition.status, reason=condition.reason, message=condition.message)


class RunRef(View):
    """A reference to an investigation."""

    namespace: str
    name: str
    uid: UUID = Field(description="The uid of its Kubernetes object, which is also its id in the record.")


def dollars(amount: Decimal | None) -> float | None:
    """Converts an amount to a JSON number; None stays None."""
    return None if amount is None else float(amount)
