"""Tests each rule of Kubernetes faults with a fault, a healthy case, and a case that only looks like the fault."""

from collections.abc import Sequence

import pytest

from tarsy.evidence.fields import Object
from tarsy.evidence.rules.signal import Certainty
from tarsy.evidence.rules.table import RULES, find_signals
from tarsy.evidence.topology import Topology
from unit.evidence.objects import snapshot
from unit.evidence.rule_cases import CASES

CERTAIN, LIKELY = Certainty.CERTAIN, Certainty.LIKELY


def _found(rule: str, objects: Sequence[Object]) -> list[tuple[Certainty, str]]:
    read = snapshot(*objects)  # type: ignore[arg-type]
    return [(one.certainty, one.quote) for one in find_signals(read, Topology(read)) if one.rule == rule]


@pytest.mark.parametrize("rule", [one.name for one in RULES])
def test_each_rule_has_cases(rule: str) -> None:
    assert rule in CASES


@pytest.mark.parametrize("rule", CASES)
def test_a_fault_gives_a_signal_with_a_quote_of_its_object(rule: str) -> None:
    case = CASES[rule]
    found = _found(rule, case.fault)
    assert len(found) == 1
    certainty, quote = found[0]
    assert quote
    assert certainty is (LIKELY if case.likely else CERTAIN)


@pytest.mark.parametrize("rule", CASES)
def test_a_healthy_case_gives_no_signal(rule: str) -> None:
    read = snapshot(*CASES[rule].healthy)
    assert find_signals(read, Topology(read)) == []


@pytest.mark.parametrize("rule", CASES)
def test_a_case_that_looks_alike_gives_no_signal_of_the_rule(rule: str) -> None:
    assert _found(rule, CASES[rule].alike) == []
