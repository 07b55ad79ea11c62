"""Skills of a plan: chosen by rule, named, shared, frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import ConfigMapKey, Plan
from tarsy.plan.readiness import NOT_READY, readiness
from tarsy.plan.revision.serving import ServingCatalog
from tarsy.plan.revision.template import revision_of
from tarsy.plan.skills import MOST_SKILLS, fits_labels, with_skills
from tarsy.resources.meta import AnyResource, Condition
from tarsy.resources.v1alpha1 import Skill, SkillStatus
from unit.plan.builders import LIBRARY, OPEN, TEAM, agent, alert, chain, defaults, plan_of, provider, skill, stage

RULE = {"alertTypes": ["PodCrash"]}


def plan(*found: AnyResource, **parts: Any) -> Plan:
    given = {obj.KIND for obj in found}
    usual = [one for one in (chain(), agent(), provider()) if one.KIND not in given]
    return plan_of([*usual, *found], **parts)


def used(of: Plan) -> dict[str, bool]:
    """The skills of the only agent, each with whether it is required."""
    ((only,),) = [stage.agents for stage in of.stages]
    return {one.name: one.required for one in only.skills}


def named(*names: str, **rest: Any) -> list[dict[str, Any]]:
    return [{"name": name, **rest} for name in names]


@pytest.mark.parametrize(
    ("rule", "applied"),
    [
        (None, False),
        ({"alertTypes": ["PodCrash"]}, True),
        ({"alertTypes": ["NodeDown", "PodCrash"]}, True),
        ({"alertTypes": ["NodeDown"]}, False),
        ({"namespaces": [TEAM]}, True),
        ({"namespaces": ["team-b"]}, False),
        ({"alertTypes": ["PodCrash"], "namespaces": ["team-b"]}, False),
        ({"alertTypes": ["PodCrash"], "namespaces": [TEAM, "team-b"]}, True),
        ({"workloadLabels": {"app": "web"}}, True),  # the text of the alert is not known here
    ],
)
def test_a_skill_that_nobody_names_is_offered_where_its_rules_apply(
    rule: Mapping[str, Any] | None, applied: bool
) -> None:
    made = skill(appliesTo=rule) if rule else skill()

    assert used(plan(made)) == ({"pod-crashes": False} if applied else {})


@pytest.mark.parametrize(
    ("agents", "slot", "expected"),
    [
        (None, None, {"by-rule": False}),
        ([], None, {}),
        (named("plain"), None, {"plain": False}),
        (named("plain", required=True), None, {"plain": True}),
        (named("plain"), named("by-rule", required=True), {"by-rule": True}),
        (named("plain"), [], {}),
        (None, named("other"), {}),
        (named("other", "plain"), None, {"plain": False}),
    ],
)
def test_names_replace_rules_and_rules_still_filter_names(agents: Any, slot: Any, expected: Mapping[str, bool]) -> None:
    skills = [skill("by-rule", appliesTo=RULE), skill("plain"), skill("other", appliesTo={"alertTypes": ["NodeDown"]})]
    entry = {"name": "triage"} if slot is None else {"name": "triage", "skills": slot}
    it = agent() if agents is None else agent(skills=agents)

    assert used(plan(*skills, it, chain(stages=[stage(entry)]))) == expected


def test_the_agent_that_answers_questions_has_its_own_skills() -> None:
    found = plan(agent(), agent("chat-agent", skills=named("plain", required=True)), skill("plain"))

    assert found.chat is not None and [one.name for one in found.chat.skills] == ["plain"]
    assert found.to_answer().skills == found.skills != ()


def test_a_text_is_in_a_plan_once_with_its_digest_and_one_of_a_config_map_is_not_yet() -> None:
    several = chain(stages=[stage("triage", "second")])
    ref = {"name": "texts", "key": "nodes.md"}
    skills = [skill(appliesTo=RULE, allowedTools=["kube.*"]), skill("nodes", appliesTo=RULE, configMapKeyRef=ref)]

    found = plan(several, agent(), agent("second"), *skills)

    assert [len(one.skills) for one in found.stages[0].agents] == [2, 2]
    nodes, crashes = found.skills
    assert (crashes.text, crashes.allowed_tools) == ("How to do pod-crashes.", ("kube.*",))
    assert crashes.digest == hashlib.sha256(b"How to do pod-crashes.").hexdigest()
    assert nodes.text == nodes.digest == ""
    assert nodes.config_map == ConfigMapKey(namespace=TEAM, name="texts", key="nodes.md")
    assert {ref.name for ref in found.objects if ref.kind == "Skill"} == {"nodes", "pod-crashes"}


def test_a_plan_without_skills_reads_as_before_so_that_older_workers_read_it() -> None:
    assert b"skills" not in plan(skill()).dump()


def test_a_text_is_kept_without_control_characters_and_its_digest_is_that_of_the_source() -> None:
    (found,) = plan(skill(appliesTo=RULE, body="a\x00b")).skills

    assert (found.text, found.digest) == ("ab", hashlib.sha256(b"a\x00b").hexdigest())


def test_a_skill_that_does_not_exist_is_an_error_of_its_field() -> None:
    with pytest.raises(PlanInvalid) as caught:
        plan(agent(skills=named("pod-crash")), skill())

    (error,) = caught.value.errors
    assert (error.kind, error.field) == ("Agent", "spec.skills[0].name")
    assert "did you mean pod-crashes?" in error.message


def test_a_skill_of_the_library_is_used_elsewhere_where_it_is_named_and_admits_the_namespace() -> None:
    shared = skill("shared", LIBRARY, appliesTo=RULE, allowedNamespaces=OPEN)

    assert used(plan(shared)) == {}
    assert used(plan(shared, agent(skills=named("shared")))) == {"shared": False}
    own = skill("shared", appliesTo=RULE)
    (one,) = plan(shared, own, agent(skills=named("shared"))).skills
    assert one.ref.namespace == TEAM
    with pytest.raises(PlanInvalid, match="may not be used from namespace team-a; allow that namespace"):
        plan(skill("shared", LIBRARY), agent(skills=named("shared")))


def test_a_chain_of_the_library_brings_its_skills_and_never_those_of_the_namespace_that_runs_it() -> None:
    of_library = [
        chain("pods", LIBRARY, allowedNamespaces=OPEN),
        agent("triage", LIBRARY),
        provider("model", LIBRARY),
        skill("theirs", LIBRARY, appliesTo={"namespaces": [TEAM]}),
        skill("others", LIBRARY, appliesTo={"namespaces": ["team-b"]}),
    ]

    found = plan_of([*of_library, skill("ours", appliesTo=RULE), defaults()])

    assert used(found) == {"theirs": False}


@pytest.mark.parametrize(("count", "works"), [(MOST_SKILLS - 1, True), (MOST_SKILLS, True), (MOST_SKILLS + 1, False)])
def test_rules_choose_a_bounded_number_of_skills(count: int, works: bool) -> None:
    skills = [skill(f"s-{number}", appliesTo=RULE) for number in range(count)]
    if works:
        assert len(used(plan(*skills))) == count
        return
    with pytest.raises(PlanInvalid, match=f"{count} Skills of namespace team-a apply .* at most {MOST_SKILLS} may"):
        plan(*skills)


@pytest.mark.parametrize(
    ("labels", "fits"),
    [
        ({}, False),
        ({"app": frozenset({"web"})}, False),
        ({"app": frozenset({"web", "api"}), "tier": frozenset({"front"})}, True),
        ({"app": frozenset({"api"}), "tier": frozenset({"front"})}, False),
    ],
)
def test_all_labels_of_a_rule_must_be_in_the_alert(labels: Mapping[str, frozenset[str]], fits: bool) -> None:
    (found,) = plan(skill(appliesTo={"workloadLabels": {"app": "web", "tier": "front"}})).skills

    assert fits_labels(found, labels) is fits


def test_a_skill_that_is_left_out_leaves_every_agent() -> None:
    found = plan(chain(stages=[stage("triage", "second")]), agent(), agent("second"), skill(appliesTo=RULE))

    left = with_skills(found, ())

    assert left.skills == () and all(one.skills == () for one in left.agents)
    assert left.chat is not None and left.chat.skills == ()


def test_a_chain_is_not_ready_while_a_skill_of_it_is_not() -> None:
    broken = skill(appliesTo=RULE)
    ready = Condition(type="Ready", status="False", reason="ConfigMapMissing", message="-")
    broken = broken.model_copy(update={"status": SkillStatus(conditions=(ready,))})
    objects = [chain(), agent(), provider(), broken]

    errors = readiness(chain(), ResourceCatalog(objects), LIBRARY).errors

    assert ("Skill team-a/pod-crashes is not Ready (ConfigMapMissing)", NOT_READY) in [
        (error.message.partition(";")[0], reason) for error, reason in errors
    ]


def test_a_skill_is_part_of_a_revision_whatever_its_rules_and_a_later_one_is_not() -> None:
    first = skill("first", appliesTo={"alertTypes": ["NodeDown"]})
    objects: list[AnyResource] = [chain(), agent(), provider(), first]
    served = revision_of(chain(), ResourceCatalog(objects), LIBRARY)
    changed = skill("first", appliesTo={"alertTypes": ["NodeDown"]}, body="Another text.")
    now = ResourceCatalog([chain(), agent(), provider(), changed, skill("later", appliesTo=RULE)])

    assert revision_of(chain(), now, LIBRARY).digest != served.digest
    assert [one.spec.body for one in ServingCatalog(served.snapshot, now).list(Skill, TEAM)] == ["How to do first."]


def test_alerts_name_their_type_not_their_text_to_rules() -> None:
    assert used(plan(skill(appliesTo=RULE), what=alert(data="alertType: NodeDown"))) == {"pod-crashes": False}
