"""What several answers share: what was spent, why something failed, conditions, who a run is.

Decision: an amount that is not known is null, never zero, and a sum that lacks some of it says so.
"""

from decimal import Decimal
from typing import Final, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.route import View
from tarsy.record.run import Failure
from tarsy.record.usage import Usage
from tarsy.resources.meta import Condition, ConditionStatus

STATE: Final = "Where it is; kubectl shows pending as Queued, completed as Succeeded, timed_out as TimedOut."
"""Description of the field `state`."""


class Spent(View):
    """What model calls used. Output includes thinking, input includes what the provider had cached."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    usage_complete: bool = Field(default=True, description="False: of some calls the tokens are not known.")
    cost_usd: float | None = Field(default=None, alias="costUSD", description="US dollars; null: nothing is known.")
    cost_complete: bool = Field(default=True, description="False: of some calls the cost is not known.")

    @classmethod
    def of(cls, usage: Usage, cost_usd: Decimal | None, cost_complete: bool) -> Self:
        """Tokens and dollars in one."""
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


class FailureView(View):
    """Why something did not succeed."""

    reason: str = Field(description="In one CamelCase word, for programs.")
    message: str = Field(description="In a sentence, for people.")

    @classmethod
    def of(cls, failure: Failure | None) -> Self | None:
        """The failure, if there is one."""
        return None if failure is None else cls(reason=failure.reason, message=failure.message)


class ConditionView(View):
    """One aspect of a state, as in the status of Kubernetes objects."""

    type: str
    status: ConditionStatus
    reason: str
    message: str

    @classmethod
    def of(cls, condition: Condition) -> Self:
        """A condition without its times."""
        return cls(type=condition.type, status=condition.status, reason=condition.reason, message=condition.message)


class RunRef(View):
    """Which investigation."""

    namespace: str
    name: str
    uid: UUID = Field(description="The uid of its object, which is its id in the record.")


def dollars(amount: Decimal | None) -> float | None:
    """An amount as JSON has it; None stays unknown."""
    return None if amount is None else float(amount)
