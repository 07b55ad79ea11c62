"""Counts finished model calls: those of runs and those of judges alike."""

from dataclasses import dataclass
from decimal import Decimal

from tarsy.observe import metric_table as table
from tarsy.observe.metrics import Metrics
from tarsy.record.usage import Usage


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A model call that has ended.

    Attributes:
        provider_type: type of its LLMProvider.
        kind: its purpose.
        seconds: its duration.
        failure: code of its failure; None: it has an answer.
        usage: as the provider told it; None: it did not.
        cost_usd: of the usage; None: it is not known.
    """

    provider_type: str
    kind: str
    seconds: float
    failure: str | None = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None


def count_call(metrics: Metrics, call: FinishedCall) -> None:
    """Counts a model call with its time, tokens and cost.

    Args:
        metrics: of the process.
        call: that has ended.
    """
    add, provider = metrics.add, call.provider_type
    outcome = "completed" if call.failure is None else "failed"
    add(table.MODEL_CALLS, provider_type=provider, kind=call.kind, outcome=outcome)
    metrics.observe(table.MODEL_SECONDS, call.seconds, provider_type=provider)
    if call.failure is not None:
        add(table.MODEL_ERRORS, provider_type=provider, code=call.failure)
    if (usage := call.usage) is not None:
        for tokens, of in (
            (usage.input_tokens, "input"),
            (usage.output_tokens, "output"),
            (usage.thinking_tokens, "thinking"),
            (usage.cached_tokens, "cached"),
        ):
            add(table.MODEL_TOKENS, tokens, provider_type=provider, kind=of)
    if call.cost_usd is None:
        add(table.UNPRICED, provider_type=provider)
    else:
        add(table.MODEL_COST, float(call.cost_usd), provider_type=provider)
