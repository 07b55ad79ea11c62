"""Renders the result of a suite for a terminal."""

from decimal import Decimal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.evals.expectations import Outcome
from tarsy.evals.result import CaseResult, EvalResult, JudgeResult, Totals
from tarsy.record.text import clean


def result_table(result: EvalResult) -> RenderableType:
    """Returns the cases as a table, and below it the verdict with its reasons."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for title in ("CASE", "CHAIN", "OUTCOME"):
        table.add_column(title, overflow="fold")
    for title in ("PASSED", "COVERAGE", "TOKENS", "COST"):
        table.add_column(title, justify="right")
    table.add_column("WHY", overflow="fold")
    for case in result.cases:
        table.add_row(*(Text(clean(cell)) for cell in _row(case)))
    totals, verdict = result.totals, result.verdict
    rate = "no conclusive case" if verdict.pass_rate is None else f"{verdict.pass_rate:.0%} of conclusive cases passed"
    low, high = verdict.interval
    lines = [
        f"{verdict.verdict.value}: {rate} (95 % interval {low:.0%} to {high:.0%}); {precision(totals)}; "
        f"{totals.confident_wrong} confidently wrong; {totals.tokens:,} tokens; {money(totals)}.",
        *verdict.reasons,
        verdict.power,
        *([] if result.judge is None else [judge_line(result.judge)]),
    ]
    return Group(table, Text(""), *(Text(clean(line)) for line in lines))


def judge_line(judge: JudgeResult) -> str:
    """Returns what the judge of a suite is worth and used, as people read it."""
    cost = "cost unknown" if judge.cost_usd is None else f"${_dollars(judge.cost_usd)}"
    more = "" if judge.cost_complete or judge.cost_usd is None else "+"
    return f"{judge.sentence} It made {judge.calls} calls: {judge.tokens:,} tokens, {cost}{more}."


def precision(totals: Totals) -> str:
    """Returns the share of citations that hold, as people read it."""
    if not totals.citations:
        return "no citations"
    return f"{totals.held} of {totals.citations} citations hold ({totals.held / totals.citations:.0%})"


def money(totals: Totals) -> str:
    """Returns the cost, as people read it; a `+` marks a lower bound."""
    if totals.cost_usd is None:
        return "cost unknown"
    return f"${_dollars(totals.cost_usd)}{'' if totals.cost_complete else '+'}"


def _row(case: CaseResult) -> tuple[str, ...]:
    counted = case.counted()
    coverages = [sample.coverage for sample in case.samples if sample.coverage is not None]
    costs = [sample.cost_usd for sample in case.samples]
    known = [cost for cost in costs if cost is not None]
    why = next(
        (c.sentence for sample in case.samples for c in sample.checks if c.outcome is not Outcome.PASSED),
        "" if case.samples else "No sample was run.",
    )
    return (
        case.name,
        case.chain,
        counted.outcome.value + (", flaky" if counted.flaky else ""),
        f"{counted.passed}/{case.asked}",
        f"{min(coverages):.0%}" if coverages else "-",
        f"{sum(sample.tokens for sample in case.samples):,}",
        f"${_dollars(sum(known, Decimal(0)))}" if known else "-",
        why,
    )


def _dollars(cost: Decimal) -> str:
    return f"{cost:.4f}"
