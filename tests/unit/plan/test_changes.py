"""What a stage of kind Changes becomes in the plan, and whose rights limit it."""

import pytest

from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import ChangesPlan, Plan
from tarsy.plan.reach import read_plan
from unit.plan.builders import LIBRARY, OPEN, TEAM, agent, chain, plan_of, provider, stage

READS = {
    "name": "before",
    "kind": "Changes",
    "changes": {"serviceAccountName": "reader", "windowSeconds": 600, "stopWhen": "Certain"},
}


def made(*stages: dict[str, object], **spec: object) -> Plan:
    return plan_of([provider(), agent(), chain(stages=list(stages), **spec)])


def test_the_stage_is_frozen_without_agents_and_its_account_is_one_of_the_run() -> None:
    plan = made(READS, stage())
    first, second = plan.stages
    assert first.changes == ChangesPlan(account="reader", window_seconds=600, stop_when="Certain")
    assert first.agents == () and first.synthesis is None
    assert second.changes is None and len(second.agents) == 1
    assert plan.accounts == {"reader"} and plan.reads_changes
    assert read_plan(plan.dump()) == plan


def test_without_settings_the_stage_reads_nothing_and_never_stops() -> None:
    plan = made({"name": "before", "kind": "Changes"}, stage())
    assert plan.stages[0].changes == ChangesPlan()
    assert plan.accounts == frozenset() and not plan.reads_changes


def test_the_account_of_a_library_chain_is_one_of_the_namespace_of_the_run() -> None:
    shared = chain(namespace=LIBRARY, stages=[READS, stage()], allowedNamespaces=OPEN)
    plan = plan_of([provider(namespace=LIBRARY), agent(namespace=LIBRARY), shared])
    assert (plan.namespace, plan.accounts) == (TEAM, {"reader"})


def test_answers_to_questions_read_no_objects() -> None:
    assert made(READS, stage()).to_answer().accounts == frozenset()


def test_rights_of_the_reader_are_put_into_every_stage_that_reads_and_into_no_other() -> None:
    plan = made(READS, stage(), READS | {"name": "after"}).read_as("alice", ("Pod", "Service"), ("Pod",))
    limited = ("alice", ("Pod", "Service"), ("Pod",))
    assert [s.changes and (s.changes.reader, s.changes.readable, s.changes.recorded) for s in plan.stages] == [
        limited,
        None,
        limited,
    ]


def test_a_chain_of_only_such_a_stage_needs_no_agent() -> None:
    assert [s.name for s in made(READS).stages] == ["before"]


def test_mistakes_of_the_other_stages_are_still_all_reported() -> None:
    with pytest.raises(PlanInvalid) as caught:
        made(READS, stage("absent"), stage("missing", name="two"))
    assert [error.field for error in caught.value.errors] == [
        "spec.stages[1].agents[0].name",
        "spec.stages[2].agents[0].name",
    ]


def test_plans_of_before_the_stage_are_read() -> None:
    plan = made(stage())
    text = plan.dump().replace(b'"changes":null,', b"")
    assert b"changes" not in text
    assert read_plan(text) == plan
