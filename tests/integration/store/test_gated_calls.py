"""Tests that an approved call is sent only while the objects that it changes are as people were shown them."""

import asyncio
import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import worker
from integration.store.parking import SCALE, Fleet, accept, decide, gated_plan
from tarsy.engine.ports import DryRun
from tarsy.kube.client import ApiError, KubeClient
from tarsy.llm.protocol import GenerateRequest
from tarsy.masking import default_masker
from tarsy.plan.model import ApprovalPlan, DelegationPlan, DryRunRule, Plan, SubAgentPlan, TargetRule, UndoRule
from tarsy.record.approvals.approval import ApprovalState
from tarsy.record.messages import Role, ToolCall, ToolOutcome
from tarsy.record.run import StageKind, State
from tarsy.record.waiting import ApprovalAnswer, ApprovalQuestion
from tarsy.runtime.approvals import RunApprovals
from tarsy.runtime.approving.examination import CallExaminer
from tarsy.runtime.approving.reading import TargetReader
from tarsy.runtime.service_account_tokens import RunTokens
from tarsy.store.approvals import ApprovalStore
from tarsy.store.reading.trace import Trace
from tarsy.store.runs.claims import ClaimedRun
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.sealing.sealed_record import SealedRecord
from unit.engine.build import agent, call, stage
from wire.scripted_client import Answer

ARGUMENTS = {"namespace": "team-a", "name": "checkout", "replicas": 3}
PATH = "/apis/apps/v1/namespaces/team-a/deployments/checkout"
OBJECT = "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'namespace': arguments.namespace, 'name': arguments.name}"
RULES = ApprovalPlan(
    account="mender",
    targets=(TargetRule(tools=("scale",), object=OBJECT, change="{'spec': {'replicas': arguments.replicas}}"),),
)
CHECKOUT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "checkout", "namespace": "team-a", "uid": "u-1", "generation": 7, "resourceVersion": "100"},
    "spec": {"replicas": 1, "env": [{"name": "DB_PASSWORD", "value": "hunter22hunter22"}]},
    "status": {"readyReplicas": 0},
}


class Cluster(KubeClient):
    """A Kubernetes API with one Deployment, which tells who reads."""

    def __init__(self) -> None:
        self.objects = {PATH: copy.deepcopy(CHECKOUT)}
        self.refusal: ApiError | None = None
        self.bearers: set[str] = set()

    async def request_token(self, namespace: str, service_account: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"spec": {"expirationSeconds": 600}, "status": {"token": f"{namespace}/{service_account}"}}

    def bearing(self, token: str) -> KubeClient:
        self.bearers.add(token)
        return self

    async def request(self, method: str, target: str, **more: Any) -> dict[str, Any]:
        assert method == "GET"
        if target == "/apis/apps/v1":
            deployments = {"name": "deployments", "kind": "Deployment", "namespaced": True}
            return {"resources": [deployments, {"name": "deployments/scale", "kind": "Scale", "namespaced": True}]}
        if self.refusal is not None:
            raise self.refusal
        if target not in self.objects:
            raise ApiError(404, "NotFound", "not found")
        return self.objects[target]


def _brain(request: GenerateRequest) -> Answer:
    """Looks, proposes a call with the evidence of the look, then concludes with what the last tool told."""
    answers = [message for message in request.messages if message.role is Role.TOOL]
    match len(answers):
        case 0:
            return Answer(tool_calls=(call("k8s.get"),))
        case 1:
            found = re.search(r"call_[0-9a-f]{12}", answers[0].content)
            assert found is not None
            return Answer(f"It has one replica ({found[0]}).", tool_calls=(call(SCALE, "c2", json.dumps(ARGUMENTS)),))
        case _:
            return Answer(answers[-1].content)


@dataclass
class Shop(Fleet):
    """Workers that ask about calls as the product does."""

    cluster: Cluster = field(default_factory=Cluster)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.brain = _brain
        self.tools.seen = {"k8s": {"scale": "d" * 16, "get": "e" * 16}}

    def approvals(self, run: ClaimedRun) -> RunApprovals:
        tokens = RunTokens(self.cluster, run.id, run.namespace)
        reader = TargetReader(self.cluster, tokens, pause=0.0)
        return RunApprovals(ApprovalStore(self.pool), CallExaminer(reader.read, lambda _: default_masker().mask), run)

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(arguments) for name, arguments, _ in self.tools.called if name == SCALE]


def _plan(rules: ApprovalPlan | None = RULES) -> Plan:
    made = gated_plan()
    (stage,) = made.stages
    (agent,) = stage.agents
    (server,) = agent.servers
    ref = server.ref.model_copy(update={"uid": "s-1", "generation": 4})
    server = server.model_copy(update={"ref": ref, "approval": rules})
    agent = agent.model_copy(update={"servers": (server,)})
    return made.model_copy(update={"stages": (stage.model_copy(update={"agents": (agent,)}),)})


async def _asked(shop: Shop, rules: ApprovalPlan | None = RULES) -> tuple[UUID, dict[str, Any]]:
    """A run that waits for people, with its approval."""
    run = await accept(shop.pool, _plan(rules))
    await shop.all_that_can(await worker(shop.pool))
    assert (await shop.record(run)).state is State.PARKED
    row = await shop.pool.fetchrow("SELECT request, targets, required, digest FROM tool_approval")
    return run, dict(row)


async def _ended(shop: Shop, run: UUID) -> str:
    await shop.all_that_can(await worker(shop.pool))
    record = await shop.record(run)
    assert record.state is State.COMPLETED and record.outcome is not None
    return record.outcome.final_analysis or ""


async def test_people_see_the_change_of_the_objects_and_a_status_only_change_runs(pool: asyncpg.Pool) -> None:
    shop = Shop(pool)
    run, asked = await _asked(shop)
    assert shop.cluster.bearers == {"team-a/mender"}
    (target,) = asked["targets"]
    assert (target["kind"], target["name"], target["uid"], target["generation"]) == ("Deployment", "checkout", "u-1", 7)
    preview = asked["request"]["shown"]["preview"]
    assert preview["kind"] == "Read"
    assert "-  replicas: 1" in preview["diff"] and "+  replicas: 3" in preview["diff"]
    assert "hunter22" not in json.dumps(asked["request"])
    shop.cluster.objects[PATH]["status"] = {"readyReplicas": 1}
    shop.cluster.objects[PATH]["metadata"]["resourceVersion"] = "200"
    await decide(pool, run)
    assert "scaled" in await _ended(shop, run)
    assert shop.sent == [ARGUMENTS]


@pytest.mark.parametrize("change", ["spec", "uid", "deleted", "managed", "forbidden"])
async def test_what_changed_between_preview_and_approval_is_stale_and_is_not_sent(
    pool: asyncpg.Pool, change: str
) -> None:
    shop = Shop(pool)
    run, _ = await _asked(shop)
    checkout = shop.cluster.objects[PATH]
    match change:
        case "spec":
            checkout["spec"]["replicas"] = 2
        case "uid":
            checkout["metadata"]["uid"] = "u-2"
        case "deleted":
            del shop.cluster.objects[PATH]
        case "managed":
            checkout["metadata"]["labels"] = {"kustomize.toolkit.fluxcd.io/name": "apps"}
        case _:
            shop.cluster.refusal = ApiError(403, "Forbidden", "no")
    await decide(pool, run)
    told = await _ended(shop, run)
    assert "the objects that it would change differ from those that approvers were shown" in told
    assert shop.sent == []
    assert await pool.fetchval("SELECT state FROM tool_approval") == "stale"


async def test_an_approved_call_waits_while_the_api_is_away(pool: asyncpg.Pool) -> None:
    shop = Shop(pool)
    run, _ = await _asked(shop)
    shop.cluster.refusal = ApiError(0, "Unreachable", "away")
    await decide(pool, run)
    await shop.all_that_can(await worker(pool))
    assert (await shop.record(run)).state is State.PARKED and shop.sent == []
    shop.cluster.refusal = None
    await pool.execute("UPDATE investigation SET wake_at = now()")
    await _ended(shop, run)
    assert shop.sent == [ARGUMENTS]


HELM = {"app.kubernetes.io/managed-by": "Helm"}


async def test_an_object_that_git_or_a_chart_manages_is_not_changed_and_the_model_gets_the_patch(
    pool: asyncpg.Pool,
) -> None:
    shop = Shop(pool)
    shop.cluster.objects[PATH]["metadata"]["labels"] = HELM
    run = await accept(pool, _plan())
    told = await _ended(shop, run)
    assert "Deployment team-a/checkout is managed by Helm" in told and "+  replicas: 3" in told
    assert shop.sent == [] and await pool.fetchval("SELECT count(*) FROM tool_approval") == 0
    assert await pool.fetchval("SELECT refused FROM mcp_interaction WHERE tool = 'scale'") == "ApprovalGitOps"
    outcome = (await shop.record(run)).outcome
    assert outcome is not None and outcome.finding is not None
    (change,) = outcome.finding.changes_for_git
    assert change.about == "Deployment team-a/checkout is managed by Helm (label app.kubernetes.io/managed-by)"
    assert "-  replicas: 1" in change.patch and "+  replicas: 3" in change.patch and "hunter22" not in change.patch


async def test_with_warn_people_see_what_manages_the_object(pool: asyncpg.Pool) -> None:
    shop = Shop(pool)
    shop.cluster.objects[PATH]["metadata"]["labels"] = HELM
    _, asked = await _asked(shop, RULES.model_copy(update={"git_ops": "Warn"}))
    assert asked["targets"][0]["managedBy"] == "Helm (label app.kubernetes.io/managed-by)"


NO_ACCOUNT = RULES.model_copy(update={"account": None})
OTHER_TOOL = RULES.model_copy(update={"targets": ()})


@pytest.mark.parametrize("rules", [NO_ACCOUNT, OTHER_TOOL], ids=["no account", "not declared"])
async def test_a_call_with_unknown_objects_is_refused_or_asked_about_without_a_preview(
    pool: asyncpg.Pool, rules: ApprovalPlan
) -> None:
    shop = Shop(pool)
    told = await _ended(shop, await accept(pool, _plan(rules)))
    assert "what it would change is not known" in told and shop.sent == []
    assert await pool.fetchval("SELECT refused FROM mcp_interaction WHERE tool = 'scale'") == "ApprovalTargetUnknown"
    run, asked = await _asked(shop, rules.model_copy(update={"undetermined": "Ask"}))
    preview = asked["request"]["shown"]["preview"]
    assert preview["kind"] == "None" and "are not known" in preview["note"] and asked["targets"] == []
    await decide(pool, run)
    await _ended(shop, run)
    assert shop.sent == [ARGUMENTS]


async def test_a_server_that_declares_nothing_is_asked_about_without_a_preview(pool: asyncpg.Pool) -> None:
    _, asked = await _asked(Shop(pool), None)
    preview = asked["request"]["shown"]["preview"]
    assert preview["kind"] == "None" and "not known whether Argo CD, Flux or Helm manages them" in preview["note"]
    assert (asked["required"], asked["targets"]) == (1, [])


async def test_an_object_that_does_not_exist_yet_has_no_undo(pool: asyncpg.Pool) -> None:
    shop = Shop(pool)
    shop.cluster.objects.clear()
    run, asked = await _asked(shop, UNDONE)
    assert "uid" not in asked["targets"][0] and "cannot be undone" in asked["request"]["shown"]["undo"]["note"]
    assert "does not exist" in asked["request"]["shown"]["preview"]["diff"]
    shop.cluster.objects[PATH] = CHECKOUT
    await decide(pool, run)
    assert "Deployment team-a/checkout was created since" in await _ended(shop, run)
    assert shop.sent == []


async def test_a_server_may_want_two_people(pool: asyncpg.Pool) -> None:
    _, asked = await _asked(Shop(pool), RULES.model_copy(update={"required": 2}))
    assert asked["required"] == 2


TRIED = RULES.model_copy(update={"dry_run": (DryRunRule(tools=("scale",), argument="dryRun", value="All"),)})


@pytest.mark.parametrize("declares", [True, False], ids=["declared", "not declared"])
async def test_a_dry_run_is_made_only_if_the_tool_declares_its_argument(pool: asyncpg.Pool, declares: bool) -> None:
    shop = Shop(pool)

    async def scale(arguments: str) -> ToolOutcome:
        return ToolOutcome("would be scaled" if "dryRun" in json.loads(arguments) else "scaled")

    shop.tools.functions = {**shop.tools.functions, SCALE: scale}
    if declares:
        shop.tools.schemas = {SCALE: {"type": "object", "properties": {"dryRun": {"type": "string"}}}}
    run, asked = await _asked(shop, TRIED)
    preview = asked["request"]["shown"]["preview"]
    if declares:
        assert shop.sent == [ARGUMENTS | {"dryRun": "All"}]
        assert preview == {"kind": "DryRun", "diff": "would be scaled"}
    else:
        assert shop.sent == [] and preview["kind"] == "Read"
        assert preview["note"] == "The tool declares no argument dryRun, so its dry run was not made."
    await decide(pool, run)
    await _ended(shop, run)
    assert shop.sent[-1] == ARGUMENTS


UNDONE = RULES.model_copy(
    update={
        "undo": (
            UndoRule(
                tools=("scale",),
                tool="scale",
                arguments="{'namespace': arguments.namespace, 'name': arguments.name, "
                "'replicas': before.spec.replicas}",
            ),
        )
    }
)


async def test_an_undo_is_a_second_approval_with_the_object_as_it_was(pool: asyncpg.Pool) -> None:
    shop, back = Shop(pool), {**ARGUMENTS, "replicas": 1}

    async def scale(arguments: str) -> ToolOutcome:
        shop.cluster.objects[PATH]["spec"]["replicas"] = json.loads(arguments)["replicas"]
        return ToolOutcome("scaled")

    def brain(request: GenerateRequest) -> Answer:
        """Goes back when the first call is made, by what it was told."""
        answers = [message.content for message in request.messages if message.role is Role.TOOL]
        if len(answers) != 2:
            return _brain(request)
        told = re.search(r"undone by k8s.scale with the arguments (\{.*?\}); that call needs the approval", answers[1])
        found = re.search(r"call_[0-9a-f]{12}", answers[1])
        assert told is not None and found is not None
        return Answer(f"It was wrong ({found[0]}).", tool_calls=(call(SCALE, "c3", told[1]),))

    shop.brain, shop.tools.functions = brain, {**shop.tools.functions, SCALE: scale}
    run, asked = await _asked(shop, UNDONE)
    undo = asked["request"]["shown"]["undo"]
    assert undo["tool"] == "scale" and json.loads(undo["arguments"]) == back
    before = await pool.fetchval("SELECT before FROM tool_approval")
    assert before[0]["spec"]["replicas"] == 1 and "hunter22" not in json.dumps(before)
    await decide(pool, run)
    await shop.all_that_can(await worker(pool))
    assert shop.sent == [ARGUMENTS], "the undo waits for people as well"
    second = await pool.fetchval("SELECT request->'shown'->>'undoes' FROM tool_approval WHERE state = 'pending'")
    first = await pool.fetchval("SELECT id FROM tool_approval WHERE state = 'consumed'")
    assert second == f"{run}-{first.hex[:10]}"
    await decide(pool, run)
    await _ended(shop, run)
    assert shop.sent == [ARGUMENTS, back]


async def test_approving_what_a_cancelled_sub_agent_asked_for_does_nothing(pool: asyncpg.Pool) -> None:
    asked, cancel = asyncio.Event(), ToolCall("x", "cancel_agent", '{"id": "fixer-1"}')
    task = ToolCall("d", "dispatch_agent", '{"name": "fixer", "task": "scale it"}')
    lead = [Answer(tool_calls=(task,)), Answer(tool_calls=(cancel,), wait=asked), Answer("not needed")]

    def brain(request: GenerateRequest) -> Answer:
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        return lead[turn] if request.agent == "lead" else _brain(request)

    class Asked(Shop):
        def approvals(self, run: ClaimedRun) -> RunApprovals:
            found = super().approvals(run)
            ask = found.ask

            async def noted(question: ApprovalQuestion, dry_run: DryRun) -> ApprovalAnswer:
                answer = await ask(question, dry_run)
                asked.set()
                return answer

            found.ask = noted  # type: ignore[method-assign]
            return found

    shop = Asked(pool)
    shop.brain = brain
    made = _plan()
    ((fixer,),) = (one.agents for one in made.stages)
    delegation = DelegationPlan(
        agents=(SubAgentPlan(agent=fixer.model_copy(update={"agent": "fixer"}), max_dispatches=1),)
    )
    parent = agent("lead").model_copy(update={"delegation": delegation})
    run = await accept(pool, made.model_copy(update={"stages": (stage("fix", parent),)}))
    await shop.all_that_can(await worker(pool))

    row = await pool.fetchrow("SELECT id, state, outcome FROM tool_approval")
    assert (await shop.record(run)).state is State.COMPLETED
    assert row["state"] == "withdrawn" and row["outcome"].startswith(
        "Sub-agent fixer-1, which asked for it, was cancelled"
    )
    assert not await ApprovalStore(pool).settle(row["id"], ApprovalState.APPROVED)
    assert await pool.fetchval("SELECT state FROM tool_approval") == "withdrawn"
    await Runs(pool).wake(run)
    await shop.all_that_can(await worker(pool))
    assert shop.sent == []


def _acting() -> Plan:
    """A chain that finds, then acts."""
    made = _plan()
    ((fixer,),) = (one.agents for one in made.stages)
    finder = agent("finder")
    return made.model_copy(
        update={
            "stages": (
                stage("look", finder),
                stage("act", fixer).model_copy(update={"acts": True}),
            )
        }
    )


def _finds_and_acts(word: str) -> Callable[[GenerateRequest], Answer]:
    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "finder":
            return Answer("One replica is too few.")
        answers = sum(message.role is Role.TOOL for message in request.messages)
        return Answer(f"Done.\n{word}") if answers > 1 else _brain(request)

    return brain


@pytest.mark.parametrize("word", ["YES", "NO", "maybe"])
async def test_what_a_stage_did_is_read_from_the_calls_that_were_sent(pool: asyncpg.Pool, word: str) -> None:
    shop = Shop(pool)
    shop.brain = _finds_and_acts(word)
    run = await accept(pool, _acting())
    await shop.all_that_can(await worker(pool))
    waiting = (await shop.record(run)).stages[1]
    assert waiting.kind is StageKind.ACTION and waiting.acted is not None
    assert (waiting.acted.acted, waiting.acted.sentence) == (False, "No action was taken so far.")
    assert shop.sent == []
    await decide(pool, run)
    await shop.all_that_can(await worker(pool))

    record = await shop.record(run)
    looked, acted = (one.acted for one in record.stages)
    assert looked is None and acted is not None and shop.sent == [ARGUMENTS]
    (sent,) = acted.calls
    assert (sent.tool, sent.state, acted.acted) == (SCALE, "completed", True)
    assert acted.word.value == {"YES": "Yes", "NO": "No", "maybe": "Unknown"}[word]
    assert (acted.contradiction is not None) is (word == "NO")
    assert record.outcome is not None and record.outcome.final_analysis == "One replica is too few."
    detail = (await Trace(pool).stages(run))[1]
    assert detail.acted == acted
    (report,) = await SealedRecord(pool).check(run)
    assert report.flaws == []
    await pool.execute("UPDATE stage SET word = 'No' WHERE kind = 'action' AND word IS DISTINCT FROM 'No'")
    await pool.execute("UPDATE stage SET word = 'Yes' WHERE kind = 'action' AND $1", word == "NO")
    (report,) = await SealedRecord(pool).check(run)
    assert [flaw.where for flaw in report.flaws] == [f"stage/{detail.id}/end"]


async def test_a_run_that_is_cancelled_after_its_call_was_sent_tells_the_action(pool: asyncpg.Pool) -> None:
    shop = Shop(pool)
    reached = asyncio.Event()
    finds = _finds_and_acts("YES")

    def brain(request: GenerateRequest) -> Answer:
        answer = finds(request)
        if answer.text.startswith("Done."):
            reached.set()
            return replace(answer, wait=asyncio.Event())
        return answer

    shop.brain = brain
    run = await accept(pool, _acting())
    await shop.all_that_can(await worker(pool))
    await decide(pool, run)
    working = asyncio.create_task(shop.all_that_can(await worker(pool)))
    async with asyncio.timeout(30):
        await reached.wait()
    working.cancel()
    await asyncio.wait([working])
    (acted,) = [one.acted for one in (await shop.record(run)).stages if one.acted is not None]
    assert acted.acted and [one.tool for one in acted.calls] == [SCALE]
