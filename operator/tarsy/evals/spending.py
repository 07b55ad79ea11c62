"""Compares what was spent with a budget, of the samples of an EvalRun and of its judge."""

from tarsy.resources.v1alpha1.eval_suite import EvalBudget
from tarsy.resources.v1alpha1.judge import JudgeBudget
from tarsy.store.judging.eval_rows import EvalUsage
from tarsy.store.judging.judge_calls import JudgeUsage


def budget_reached(
    budget: EvalBudget | JudgeBudget | None, usage: EvalUsage | JudgeUsage, *, whose: str, unknown: str
) -> str | None:
    """Returns why no more may be spent, as a sentence; None: the budget is not reached.

    Args:
        budget: None: no limit.
        usage: what was spent.
        whose: word before `budget`.
        unknown: whose cost is unknown where it is, and the remedy.
    """
    if budget is None:
        return None
    if budget.tokens is not None and usage.tokens >= budget.tokens:
        return f"{whose} budget of {budget.tokens:,} tokens is reached ({usage.tokens:,} used)."
    if budget.cost_usd is not None:
        if usage.cost_usd is not None and float(usage.cost_usd) >= budget.cost_usd:
            return f"{whose} budget of {budget.cost_usd:g} US dollars is reached ({usage.cost_usd:f} used)."
        if not usage.cost_complete:
            return f"{whose} budget limits the cost, and the cost of {unknown}."
    return None
