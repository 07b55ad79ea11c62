"""Tracks the budget of a run, across all its agents and attempts.

Two rules. Hard: once a limit is reached, no model and no tool call begins, so a run never overspends by more than what
was in flight. Soft: as soon as what is spent, in flight and still needed to conclude reaches a limit, every agent
concludes. The call an agent is about to make counts as in flight, so a run normally ends inside its budget: a budget
is somebody's money, and one iteration less is the smaller evil. What a provider does not report is estimated, and the
message says so.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal
from uuid import UUID

from tarsy.plan.model import PlannedBudget, PlannedRates
from tarsy.record.history import BudgetExceeded, BudgetLimit, RunHistory
from tarsy.record.usage import Usage

_MILLION = 1_000_000
_ROUNDING = Decimal("0.00000001")
CACHE_WRITE = Decimal("1.25")
"""Price of input that is written to a prompt cache for five minutes, in prices of input (Claude's, the only such)."""


class BudgetSpent(Exception):
    """A call was not made, because a limit of the run's budget is reached."""

    def __init__(self, exceeded: BudgetExceeded) -> None:
        super().__init__(exceeded.message)
        self.exceeded = exceeded


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """Holds the expected usage of a model call: tokens in and out, at the rates of its provider.

    `writes_cache`: all input is priced as if it was written to a prompt cache, the most that it may cost.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    rates: PlannedRates | None = None
    writes_cache: bool = False

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens

    @property
    def cost_usd(self) -> Decimal | None:
        """US dollars; None without rates."""
        if self.rates is None:
            return None
        written = self.input_tokens if self.writes_cache else 0
        usage = Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens, cache_write_tokens=written)
        return cost(usage, self.rates)


def cost(usage: Usage | None, rates: PlannedRates | None) -> Decimal | None:
    """US dollars of a model call; None when its usage or its rates are not known.

    Args:
        usage: as the provider reported it; cached tokens and those written to a cache are part of its input, thinking
            of its output.
        rates: US dollars for a million tokens.
    """
    if usage is None or not usage.complete or rates is None:
        return None
    cached = min(usage.cached_tokens, usage.input_tokens)
    at = rates.long if rates.long is not None and usage.input_tokens > rates.long.above else rates
    at_cached = at.input if at.cached is None else at.cached
    written = min(usage.cache_write_tokens, usage.input_tokens - cached)
    dollars = (
        (usage.input_tokens - cached - written) * Decimal(str(at.input))
        + cached * Decimal(str(at_cached))
        + written * Decimal(str(at.input)) * CACHE_WRITE
        + usage.output_tokens * Decimal(str(at.output))
    )
    return (dollars / _MILLION).quantize(_ROUNDING)


class BudgetTracker:
    """Tracks the usage of a run, and whether its budget allows more; shared by the run's agents.

    `exceeded` is the first limit that was reached; it stays. `tokens_per_byte` is what a provider of the run last
    counted of a request.

    Args:
        run: the investigation.
        budget: of the whole run; None is no limit.
        history: of earlier attempts.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        run: UUID | None = None,
        budget: PlannedBudget | None = None,
        history: RunHistory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        history = history or RunHistory()
        self.run = run or UUID(int=0)
        self._budget = budget or PlannedBudget()
        self.bounded = self._budget != PlannedBudget()
        """Whether the run has any limit."""
        self._clock = clock
        self._began = clock() - history.seconds
        self._tokens = history.tokens
        self._cost = history.cost_usd
        self._tool_calls = history.tool_calls
        self._estimated = history.estimated
        self._model_seconds = history.model_seconds
        self._tool_seconds = history.tool_seconds
        self._since: dict[UUID, float] = {}
        self._flying: dict[UUID, UsageEstimate] = {}
        self._conclusions: dict[UUID, UsageEstimate] = {}
        self._ahead: tuple[PlannedRates | None, ...] = ()
        self._synthesis = False
        self.exceeded = history.exceeded
        self.tokens_per_byte: float | None = None

    @property
    def tool_calls(self) -> int:
        """Tool calls that were made, or perhaps made, by all attempts."""
        return self._tool_calls

    def ahead(self, *, synthesis: Sequence[PlannedRates | None], summary: Sequence[PlannedRates | None]) -> None:
        """Returns the rates of the model calls that follow the running stage until the run is concluded."""
        self._synthesis = bool(synthesis)
        self._ahead = (*synthesis, *summary)

    def spent(self) -> BudgetExceeded | None:
        """The limit that is reached already: no model call may begin (the hard rule)."""
        return self._reached([], 0.0)

    def spent_for_tools(self) -> BudgetExceeded | None:
        """The limit that is reached already: no tool call may begin."""
        return self._reached([], 0.0) or self._tools_reached()

    def short(self, execution: UUID, call: UsageEstimate) -> BudgetExceeded | None:
        """The limit that leaves no room for `call` and the conclusions after it (the soft rule).

        Before anything is spent nothing is known but the length of texts, so that stops nobody: a run whose budget
        holds but one call makes that call.

        Args:
            execution: whose turn it is.
            call: what its next call needs; its conclusion is expected to need as much.
        """
        self._conclusions[execution] = call
        running = list(self._conclusions.values())
        needs = [*running, *self._flying.values(), call]
        output = max(need.output_tokens for need in running)
        for i, rates in enumerate(self._ahead):
            reads = sum(need.tokens for need in running) if self._synthesis and i == 0 else output
            needs.append(UsageEstimate(reads, output, rates))
        if not self._tokens:
            needs = []
        seconds = self._model_seconds * (2 + len(self._ahead)) + self._tool_seconds
        return self._reached(needs, seconds) or self._tools_reached()

    def fits(self, call: UsageEstimate) -> BudgetExceeded | None:
        """The limit that `call` alone would reach; for what can be left out."""
        return self._reached([call], self._model_seconds)

    def model_started(self, call: UUID, need: UsageEstimate) -> None:
        """A model call is in flight."""
        self._flying[call] = need
        self._since[call] = self._clock()

    def model_refused(self, call: UUID) -> None:
        """A model call was not made."""
        self._flying.pop(call, None)
        self._since.pop(call, None)

    def model_finished(self, call: UUID, usage: Usage | None, used: UsageEstimate, sent: int) -> None:
        """A model call has come back.

        Args:
            call: its id.
            usage: what the provider reported; None when nothing.
            used: what counts when nothing was reported, and the rates.
            sent: bytes of the request.
        """
        self._flying.pop(call, None)
        self._model_seconds = max(self._model_seconds, self._clock() - self._since.pop(call, self._clock()))
        known = usage is not None and usage.complete
        if usage is not None and known:
            used = replace(used, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
            if usage.input_tokens and sent:
                self.tokens_per_byte = usage.input_tokens / sent
        self._estimated = self._estimated or (not known and used.tokens > 0)
        self._tokens += used.tokens
        self._cost += (cost(usage, used.rates) if known else used.cost_usd) or Decimal(0)

    def tool_started(self, call: UUID) -> None:
        """A tool call is about to be made."""
        self._tool_calls += 1
        self._since[call] = self._clock()

    def tool_finished(self, call: UUID) -> None:
        """A tool call is over."""
        self._tool_seconds = max(self._tool_seconds, self._clock() - self._since.pop(call, self._clock()))

    def ended(self, execution: UUID) -> None:
        """An execution has ended: it needs no conclusion any more."""
        self._conclusions.pop(execution, None)

    def _reached(self, needs: Sequence[UsageEstimate], seconds: float) -> BudgetExceeded | None:
        """The first limit, but that of tool calls, reached by what is spent and so much more."""
        budget, passed = self._budget, self._clock() - self._began
        tokens = sum(need.tokens for need in needs)
        dollars = sum((need.cost_usd or Decimal(0) for need in needs), Decimal(0))
        guess = " (partly estimated, as a provider did not report its usage)" if self._estimated else ""
        if budget.tokens is not None and self._tokens + tokens >= budget.tokens:
            told = f"{budget.tokens:,} tokens", f"{self._tokens:,} are spent{guess}", f"{_about(tokens):,.0f}"
            return self._told(BudgetLimit.TOKENS, *told, self._tokens >= budget.tokens)
        if budget.cost_usd is not None and self._cost + dollars >= Decimal(str(budget.cost_usd)):
            more = f"US$ {_about(dollars):f}"
            told = f"US$ {budget.cost_usd:g}", f"US$ {self._cost.normalize():f} are spent{guess}", more
            return self._told(BudgetLimit.COST, *told, self._cost >= Decimal(str(budget.cost_usd)))
        if budget.minutes is not None and passed + seconds >= budget.minutes * 60:
            gone = math.floor(passed / 6) / 10
            more = f"{math.ceil(max((passed + seconds) / 6, budget.minutes * 10)) / 10 - gone:.1f}"
            told = f"{budget.minutes:g} minutes", f"{gone:g} have passed", more
            return self._told(BudgetLimit.MINUTES, *told, passed >= budget.minutes * 60)
        return None

    def _tools_reached(self) -> BudgetExceeded | None:
        allowed = self._budget.tool_calls
        if allowed is None or self._tool_calls < allowed:
            return None
        return self._told(
            BudgetLimit.TOOL_CALLS, f"{allowed:,} tool calls", f"{self._tool_calls:,} were made", "", True
        )

    def _told(self, limit: BudgetLimit, whole: str, spent: str, more: str, out: bool) -> BudgetExceeded:
        """The sentence, in which what is used and what is still needed make the whole."""
        rest = "." if out else f", and about {more} more are needed to go on and conclude."
        return BudgetExceeded(limit, f"The run's budget of {whole} is reached: {spent}{rest}")


def _about(value: int | Decimal) -> Decimal:
    """The value in two significant digits, never below it: it is an expectation, and must not look like a count."""
    exact = Decimal(value)
    if not exact:
        return exact
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), rounding=ROUND_UP)
