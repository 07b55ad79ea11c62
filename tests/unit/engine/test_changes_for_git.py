"""Changes of calls that were refused because GitOps manages their objects: they stand in the finding, always."""

import pytest

from tarsy.plan.model import AgentPlan, ApprovalPlan, DelegationPlan, SubAgentPlan
from tarsy.record.approvals.git_change import MAX_CHANGES, PATCH_LIMIT, ChangeForGit, ManagedObject, distinct_changes
from tarsy.record.finding import Finding
from tarsy.record.messages import ToolCall
from tarsy.record.run import State
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage
from unit.engine.people import ScriptedPeople
from wire.scripted_client import Answer

SCALE, PATCH = "k8s.scale", "k8s.patch"
CHECKOUT = ManagedObject(object="Deployment shop/checkout", managed_by="Argo CD (annotation tracking-id)")
STRUCTURED = """Too few replicas.

```finding
{"summary": "Too few replicas.", "confidence": "Low", "claims": []}
```"""


def _change(tool: str = SCALE, patch: str = "+  replicas: 3") -> ChangeForGit:
    return ChangeForGit.limited(tool, [CHECKOUT], patch)


def _gated(name: str = "triage") -> AgentPlan:
    made = agent(name, servers=["k8s"])
    servers = tuple(one.model_copy(update={"approval": ApprovalPlan()}) for one in made.servers)
    return made.model_copy(update={"servers": servers})


def _scene(script: dict[str, list[Answer]], *changes: ChangeForGit) -> Scene:
    tools = FakeToolboxes({SCALE: says("scaled"), PATCH: says("patched")})
    tools.gated = frozenset({SCALE, PATCH})
    made = scene(by_turn(script), toolboxes=tools)
    made.approvals = ScriptedPeople(made.record, managed={change.tool: change for change in changes})
    return made


@pytest.mark.parametrize("conclusion", ["It needs more replicas.", STRUCTURED], ids=["text", "structured"])
async def test_the_finding_has_the_change_whatever_its_model_concludes(conclusion: str) -> None:
    made = _scene({"triage": [Answer(tool_calls=(call(SCALE),)), Answer(conclusion)]}, _change())
    outcome = await made.run(plan(stage("fix", _gated())))
    assert outcome.state is State.COMPLETED and outcome.finding is not None
    assert outcome.finding.changes_for_git == (_change(),)
    assert outcome.finding.structured == (conclusion is STRUCTURED)
    assert made.toolboxes.called == []


async def test_the_same_change_of_the_same_object_stands_there_once() -> None:
    calls = [Answer(tool_calls=(call(SCALE), call(PATCH, "c2"))), Answer(tool_calls=(call(SCALE, "c3"),))]
    other = _change(PATCH, "+  image: shop:41")
    made = _scene({"triage": [*calls, Answer("done")]}, _change(), other)
    outcome = await made.run(plan(stage("fix", _gated())))
    assert outcome.finding is not None and outcome.finding.changes_for_git == (_change(), other)


async def test_changes_of_agents_side_by_side_survive_their_synthesis_and_later_stages() -> None:
    script = {
        "left": [Answer(tool_calls=(call(SCALE),)), Answer("left")],
        "right": [Answer(tool_calls=(call(PATCH),)), Answer("right")],
        "fix-synth": [Answer("Both are right.")],
        "last": [Answer(STRUCTURED)],
    }
    made = _scene(script, _change(), _change(PATCH, "+  image: shop:41"))
    outcome = await made.run(plan(stage("fix", _gated("left"), _gated("right")), stage("end", agent("last"))))
    assert outcome.finding is not None
    assert {change.tool for change in outcome.finding.changes_for_git} == {SCALE, PATCH}


async def test_the_change_of_a_sub_agent_is_in_the_finding_of_its_parent() -> None:
    dispatch = ToolCall("d1", "dispatch_agent", '{"name": "kubernetes-agent", "task": "scale it"}')
    script = {
        "lead": [Answer(tool_calls=(dispatch,)), Answer("I wait."), Answer(STRUCTURED)],
        "kubernetes-agent-1": [Answer(tool_calls=(call(SCALE),)), Answer("It belongs into Git.")],
    }
    made = _scene(script, _change())
    sub = SubAgentPlan(agent=_gated("kubernetes-agent"), max_dispatches=1)
    lead = agent("lead").model_copy(update={"delegation": DelegationPlan(agents=(sub,))})
    outcome = await made.run(plan(stage("fix", lead)))
    assert outcome.finding is not None and outcome.finding.changes_for_git == (_change(),)


async def test_a_run_that_lost_its_process_anywhere_has_the_change_in_its_finding() -> None:
    script = {"triage": [Answer(tool_calls=(call(SCALE),)), Answer(STRUCTURED)]}
    of = plan(stage("fix", _gated()))
    for die_at in range(40):
        made = _scene(script, _change())
        made.resume(die_at=die_at)
        if await live(made, of) is not None:
            break
        made.resume()
        outcome = await made.run(of)
        assert outcome.finding is not None and outcome.finding.changes_for_git == (_change(),), die_at
    else:
        pytest.fail("the run has more steps than expected")


async def test_a_finding_without_such_a_change_is_stored_as_before() -> None:
    made = _scene({"triage": [Answer(STRUCTURED)]})
    outcome = await made.run(plan(stage("fix", _gated())))
    assert outcome.finding is not None
    assert "changesForGit" not in outcome.finding.model_dump(mode="json", by_alias=True)
    assert "changes_for_git" not in outcome.finding.model_dump(mode="json")


def test_a_stored_finding_is_read_with_its_changes() -> None:
    finding = Finding(summary="s", changes_for_git=(_change(),))
    assert Finding.model_validate(finding.model_dump(mode="json", by_alias=True)) == finding
    assert Finding.model_validate(finding.model_dump()) == finding


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_text_of_a_change_is_limited(over: int) -> None:
    change = _change(patch="x" * (PATCH_LIMIT + over))
    assert len(change.patch) == min(PATCH_LIMIT, PATCH_LIMIT + over)
    assert ("[cut: " in change.patch) == (over > 0)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_number_of_changes_is_limited_and_the_first_ones_stay(over: int) -> None:
    changes = [_change(patch=str(number)) for number in range(MAX_CHANGES + over)]
    found = distinct_changes([*changes, *changes])
    assert found == tuple(changes[:MAX_CHANGES])
