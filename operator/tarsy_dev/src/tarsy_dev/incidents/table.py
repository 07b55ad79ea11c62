"""Renders what a chain found in the incidents, beside what rules alone find."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.cli.evals.table import money
from tarsy.evals.expectations import Outcome
from tarsy.evals.result import CaseResult, totals_of
from tarsy.record.text import clean
from tarsy_dev.incidents.rules import Measured


def bench_table(cases: Sequence[CaseResult], rules: Mapping[str, Measured]) -> RenderableType:
    """Returns a table by incident and one by kind.

    Args:
        cases: with one sample each; those without were not run.
        rules: what rules find, by name of the incident.
    """
    run = [case for case in cases if case.samples]
    each = _table(("INCIDENT", "KIND", "OUTCOME", "RULES ONLY", "WHY"), ("TOKENS", "COST"))
    for case in run:
        found, totals = rules[case.name], totals_of([case])
        wrong = (c.sentence for s in case.samples for c in s.checks if c.outcome is not Outcome.PASSED)
        note = "" if _asked(case) else "No model was asked."
        _add(
            each,
            case.name,
            found.incident.kind,
            case.counted().outcome.value + (", confidently" if totals.confident_wrong else ""),
            "right" if found.rules_are_right else "wrong",
            next(wrong, note),
            f"{totals.tokens:,}",
            money(totals),
        )
    kinds = _table(
        ("KIND",),
        (
            "INCIDENTS",
            "RIGHT",
            "INCONCLUSIVE",
            "CONFIDENT WRONG",
            "NO MODEL",
            "CITATIONS HOLD",
            "TOKENS",
            "COST",
            "RULES ONLY",
        ),
    )
    for kind in [*dict.fromkeys(rules[case.name].incident.kind for case in run), "all"]:
        _add(kinds, *_sums(kind, [case for case in run if kind in ("all", rules[case.name].incident.kind)], rules))
    return Group(each, Text(""), kinds)


def _sums(kind: str, cases: Sequence[CaseResult], rules: Mapping[str, Measured]) -> tuple[str, ...]:
    outcomes, totals = [case.counted().outcome for case in cases], totals_of(cases)
    return (
        kind,
        str(len(cases)),
        _share(outcomes.count(Outcome.PASSED), len(cases)),
        str(outcomes.count(Outcome.INCONCLUSIVE)),
        str(totals.confident_wrong),
        str(sum(not _asked(case) for case in cases)),
        _share(totals.held, totals.citations),
        f"{totals.tokens:,}",
        money(totals),
        _share(sum(rules[case.name].rules_are_right for case in cases), len(cases)),
    )


def _asked(case: CaseResult) -> bool:
    """Returns whether a model was asked: a chain may stop where a rule is certain."""
    return any(sample.model_calls for sample in case.samples)


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.0%})" if whole else "-"


def _table(texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for title in texts:
        table.add_column(title, overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(clean(cell)) for cell in cells))
