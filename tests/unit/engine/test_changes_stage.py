"""A stage of kind Changes: its rows, what later agents are sent, the ends of a run that no model gave, and deaths."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from tarsy.engine.changes_stage import NO_FURTHER_MODEL, NO_MODEL
from tarsy.engine.conversation.truncation import tokens
from tarsy.engine.ports import NotRead
from tarsy.engine.prompts.evidence import EVIDENCE_TOKENS, fitting, shown_sections
from tarsy.evidence.briefing import Section
from tarsy.evidence.changes.change import Change, ChangeType, Source
from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.snapshot import Gap, ObjectKey, Snapshot
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.model import AgentLimits, ChangesPlan, Plan, PlannedBudget, StagePlan
from tarsy.record.finding import Confidence
from tarsy.record.ids import call_ref
from tarsy.record.messages import Role
from tarsy.record.run import InteractionState, RunOutcome, StageKind, State
from tarsy.record.timeline import EventStatus, EventType
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, call, live, plan, says, scene, stage
from unit.engine.clock import in_virtual_time
from unit.evidence.objects import LISTED, NAMESPACE, NOW, Obj, ago, made, pod, template, waiting, workload
from wire.scripted_client import Answer

CONFIG = made(
    "ConfigMap",
    "checkout-config",
    metadata={
        "managedFields": [
            {
                "manager": "kubectl-edit",
                "operation": "Update",
                "time": ago(minutes=25),
                "fieldsV1": {"f:data": {"f:URL": {}}},
            }
        ]
    },
)
OWNER = workload(
    of=template({"name": "app", "image": "shop/checkout:1", "envFrom": [{"configMapRef": {"name": "checkout-config"}}]})
)
QUOTE = 'Failed to pull image "registry.example/checkout:1.4": rpc error: code = NotFound desc = not found'
BROKEN = pod("checkout-1", waiting("ErrImagePull", QUOTE), owner=OWNER, of=OWNER["spec"]["template"])
ALERT = '{"labels": {"namespace": "shop", "pod": "checkout-1"}, "startsAt": "2026-11-23T11:40:00Z"}'
DOWN = ModelError(ModelErrorCode.CREDENTIALS, "the key was refused", retryable=False)


@dataclass
class Objects:
    """What is read; `withheld` is taken out of every text."""

    found: Snapshot | NotRead
    secret: str = "s3cr3t"
    reads: int = 0
    asked: list[ChangesPlan] = field(default_factory=list)
    hang: bool = False
    recorded: RecordedHistory = field(default_factory=RecordedHistory)
    since: list[datetime] = field(default_factory=list)

    async def read(self, changes: ChangesPlan) -> Snapshot | NotRead:
        self.reads += 1
        self.asked.append(changes)
        if self.hang:
            await asyncio.Event().wait()
        return self.found

    async def history(self, changes: ChangesPlan, since: datetime) -> RecordedHistory:
        self.since.append(since)
        return self.recorded

    def without_secrets(self, text: str) -> str:
        return text.replace(self.secret, "[MASKED]")


def cluster(*objects: Obj, gaps: Sequence[Gap] = ()) -> Snapshot:
    return Snapshot(NOW, objects, LISTED, gaps)


def changes(account: str | None = "reader", *, stop: bool = False) -> StagePlan:
    return StagePlan(name="changes", changes=ChangesPlan(account=account, stop_when="Certain" if stop else "Never"))


def of_shop(*stages: StagePlan, summary: bool = False, budget: PlannedBudget | None = None, **limits: float) -> Plan:
    made = plan(*stages, summary=summary, limits=AgentLimits(finding_repairs=0, **limits))  # type: ignore[arg-type]
    return made.model_copy(update={"namespace": NAMESPACE, "budget": budget or PlannedBudget()})


def start(brain: object, found: Snapshot | NotRead | None = None, **more: object) -> Scene:
    objects = Objects(cluster(CONFIG, OWNER, BROKEN) if found is None else found, **more)  # type: ignore[arg-type]
    return scene(brain, objects=objects)  # type: ignore[arg-type]


async def run(s: Scene, of: Plan, alert: str = ALERT) -> RunOutcome:
    return await s.run(of, alert=alert)


async def test_the_stage_is_recorded_as_two_tool_calls_of_one_execution_without_a_model() -> None:
    s = start({"triage": [Answer("The image is gone.")]})
    await run(s, of_shop(changes(), stage("look", agent())))

    rows = sorted(s.record.stages.values(), key=lambda row: row.start.index)
    assert [(r.start.name, r.start.kind, r.outcome and r.outcome.state) for r in rows] == [
        ("changes", StageKind.INVESTIGATION, State.COMPLETED),
        ("look", StageKind.INVESTIGATION, State.COMPLETED),
    ]
    execution = next(e for e in s.record.executions.values() if e.start.stage == rows[0].start.id)
    assert (execution.start.agent, execution.start.strategy, execution.start.model) == ("tarsy", "changes", "")
    calls = sorted(s.record.tool_calls.values(), key=lambda row: row.start.index)
    assert [(c.start.server, c.start.tool, c.state) for c in calls] == [
        ("tarsy", "triage", InteractionState.COMPLETED),
        ("tarsy", "changes", InteractionState.COMPLETED),
    ]
    for row in calls:
        assert row.start.call.arguments == (
            '{"namespace":"shop","named":["Pod/checkout-1"],"alertedAt":"2026-11-23T11:40:00+00:00",'
            '"windowSeconds":14400.0,"serviceAccountName":"reader"}'
        )
        assert row.start.repeatable
    assert calls[0].answered is not None and f'image-not-found: "{QUOTE}"' in calls[0].answered
    assert calls[1].answered is not None and "Config of ConfigMap shop/checkout-config" in calls[1].answered
    events = [e for e in s.record.events.values() if e.execution == execution.start.id]
    assert [(e.type, e.status) for e in events] == [
        (EventType.LLM_TOOL_CALL, EventStatus.COMPLETED),
        (EventType.LLM_TOOL_CALL, EventStatus.COMPLETED),
        (EventType.FINAL_ANALYSIS, EventStatus.COMPLETED),
    ]
    assert [m.role for m in execution.conversation] == [Role.TOOL, Role.TOOL]
    assert len(s.models.requests) == 1, "the stage asks no model"


async def test_recorded_changes_are_ranked_with_the_others_and_their_gaps_are_told() -> None:
    at = datetime(2026, 11, 23, 11, 30, tzinfo=UTC)
    config = ObjectKey("ConfigMap", NAMESPACE, "checkout-config")
    recorded = Change(at, ChangeType.CONFIG, config, "changed: data.s3cr3t", "argocd", ("data.x",), Source.RECORDED)
    gap = Gap("ConfigMap", NAMESPACE, "not watched from 09:00 to 10:00: TARSy did not run")
    s = start({"triage": [Answer("done")]})
    objects = s.objects
    assert isinstance(objects, Objects)
    objects.recorded = RecordedHistory([recorded], [gap])
    await run(s, of_shop(changes(), stage("look", agent())))
    told = next(c for c in s.record.tool_calls.values() if c.start.tool == "changes").answered or ""
    assert "changed: data.[MASKED]" in told and "argocd" in told
    assert "not watched from 09:00 to 10:00" in told
    (since,) = objects.since
    assert since == datetime(2026, 11, 22, 7, 40, tzinfo=UTC), "a day and the window before the alert"


async def test_later_agents_are_sent_the_evidence_with_ids_that_their_claims_may_cite() -> None:
    s = start({"triage": [Answer("…")]})
    outcome = await run(s, of_shop(changes(), stage("look", agent())))
    triage = next(c for c in s.record.tool_calls.values() if c.start.tool == "triage")
    ref = call_ref(triage.start.idempotency_key)
    told = s.models.requests[0].messages[-1].content
    assert f"[callId: {ref}] tarsy.triage\n<!-- TOOL_RESULT_START -->" in told
    assert told.index("tarsy.triage") < told.index("tarsy.changes")

    cited = {"text": "t", "citations": [{"callId": ref, "quote": "rpc error: code = NotFound"}]}
    quoted = json.dumps({"summary": "s", "confidence": "High", "claims": [cited]})
    s = start({"triage": [Answer(f"It is gone.\n\n```finding\n{quoted}\n```")]})
    outcome = await run(s, of_shop(changes(), stage("look", agent())))
    assert outcome.finding is not None and outcome.finding.supported_claims == 1


async def test_a_certain_signal_about_the_target_ends_the_run_without_a_model_where_the_stage_says_so() -> None:
    s = start({})
    outcome = await run(s, of_shop(changes(stop=True), stage("look", agent()), summary=True))

    assert outcome.state is State.COMPLETED
    assert s.models.requests == []
    assert outcome.finding is not None and outcome.finding.confidence is Confidence.HIGH
    assert outcome.finding.claims and all(claim.supported for claim in outcome.finding.claims)
    assert {c.tool for claim in outcome.finding.claims for c in claim.citations} == {"tarsy.triage", "tarsy.changes"}
    assert NO_MODEL in outcome.finding.notes
    assert outcome.final_analysis is not None and outcome.final_analysis.endswith(NO_MODEL)
    assert outcome.executive_summary is not None and outcome.executive_summary.endswith(NO_MODEL)


async def test_a_run_that_asked_a_model_before_does_not_claim_that_none_was_asked() -> None:
    s = start({"triage": [Answer("hm")]})
    outcome = await run(s, of_shop(stage("look", agent()), changes(stop=True), stage("more", agent())))
    assert outcome.final_analysis is not None and outcome.final_analysis.endswith(NO_FURTHER_MODEL)
    assert len(s.models.requests) == 1


@pytest.mark.parametrize(
    "alert",
    ["nothing is named here", '{"labels": {"namespace": "shop", "pod": "other-1"}}', '{"labels": {"namespace": "x"}}'],
)
async def test_without_a_certain_signal_about_the_target_the_chain_goes_on(alert: str) -> None:
    other = pod("other-1", of=template(labels={"app": "other"}))
    s = start({"triage": [Answer("I looked.")]}, cluster(CONFIG, OWNER, BROKEN, other))
    outcome = await run(s, of_shop(changes(stop=True), stage("look", agent())), alert)
    assert outcome.final_analysis == "I looked."


async def test_a_failed_model_stage_stays_failed_and_has_the_finding_of_the_evidence() -> None:
    s = start({"triage": [Answer(error=DOWN)]})
    outcome = await run(s, of_shop(changes(), stage("look", agent()), summary=True))
    assert outcome.state is State.FAILED
    assert outcome.failure is not None and "the key was refused" in outcome.failure.message
    assert outcome.finding is not None and outcome.finding.supported_claims >= 2
    assert outcome.final_analysis is not None and "```" not in outcome.final_analysis


async def test_a_budget_that_is_gone_leaves_the_evidence_beside_the_last_words_of_the_agent() -> None:
    answer = Answer("I look.", tool_calls=(call("k.get"),), usage=Usage(input_tokens=900, output_tokens=200))
    s = start({"triage": [answer]})
    s.toolboxes = FakeToolboxes({"k.get": says("a pod")})
    outcome = await run(s, of_shop(changes(), stage("look", agent(servers=("k",))), budget=PlannedBudget(tokens=1000)))
    assert outcome.state is State.COMPLETED
    assert outcome.finding is not None and outcome.finding.structured
    assert outcome.finding.supported_claims >= 2
    assert outcome.final_analysis is not None
    assert "budget" in outcome.final_analysis and "checkout-1" in outcome.final_analysis


async def test_without_an_account_nothing_is_read_and_one_line_says_so() -> None:
    s = start({"triage": [Answer("done")]})
    outcome = await run(s, of_shop(changes(None), stage("look", agent())))
    assert outcome.state is State.COMPLETED
    assert s.record.tool_calls == {} and s.record.missing == {}
    told = s.models.requests[0].messages[-1].content
    assert "Nothing was read: stage changes names no ServiceAccount" in told


@pytest.mark.parametrize("refused", [True, False])
async def test_objects_that_cannot_be_read_fail_no_run_and_degrade_its_evidence_unless_rights_are_missing(
    refused: bool,
) -> None:
    why = NotRead("TARSy may not request tokens s3cr3t of ServiceAccount shop/reader", refused=refused)
    s = start({"triage": [Answer("done")]}, why)
    outcome = await run(s, of_shop(changes(stop=True), stage("look", agent())))
    assert outcome.state is State.COMPLETED
    told = {"tarsy": "TARSy may not request tokens [MASKED] of ServiceAccount shop/reader"}
    assert s.record.missing == ({} if refused else told)
    assert {c.state for c in s.record.tool_calls.values()} == {InteractionState.FAILED}
    assert "may not request tokens" in s.models.requests[0].messages[-1].content


def test_reading_that_takes_too_long_is_given_up() -> None:
    s = start({"triage": [Answer("done")]}, hang=True)
    outcome = in_virtual_time(run(s, of_shop(changes(), stage("look", agent()), tool_call_seconds=9.0)))
    assert outcome.state is State.COMPLETED
    assert "longer than 9 s" in s.record.missing["tarsy"]


async def test_gaps_are_told_and_secrets_are_masked_in_rows_and_messages() -> None:
    leaky = pod("checkout-1", waiting("ErrImagePull", f"{QUOTE} s3cr3t"), owner=OWNER, of=OWNER["spec"]["template"])
    gap = Gap("Service", NAMESPACE, "may not be listed")
    s = start({"triage": [Answer("done")]}, cluster(OWNER, leaky, gaps=[gap]))
    outcome = await run(s, of_shop(changes(stop=True), stage("look", agent())))
    texts = [row.answered or "" for row in s.record.tool_calls.values()]
    texts += [message.content for row in s.record.executions.values() for message in row.conversation]
    texts += [event.content for event in s.record.events.values()]
    assert not any("s3cr3t" in text for text in texts)
    assert any("[MASKED]" in text for text in texts)
    assert all(
        "Not read: Service (may not be listed)." in row.answered for row in s.record.tool_calls.values() if row.answered
    )
    assert outcome.finding is not None and outcome.finding.supported_claims >= 1, "a masked quote holds"


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("hold", [True, False], ids=["held", "written at once"])
@pytest.mark.parametrize("step", range(24))
async def test_a_death_at_any_step_leaves_the_same_run(step: int, hold: bool, before: bool) -> None:
    of = of_shop(changes(), stage("look", agent()))
    s = start({"triage": [Answer("I looked.")] * 3})
    s.resume(die_at=step, before=before, hold=hold)
    outcome = await live(s, of)
    if outcome is None:
        s.resume()
        outcome = await s.run(of, alert="pod checkout-1")
    assert outcome.state is State.COMPLETED and outcome.final_analysis == "I looked."
    done = [c for c in s.record.tool_calls.values() if c.state is InteractionState.COMPLETED]
    assert sorted(c.start.tool for c in done) == ["changes", "triage"]
    first = next(e for e in s.record.executions.values() if e.start.agent == "tarsy")
    assert len(first.conversation) == 2 and first.outcome is not None


async def test_a_stage_that_is_finished_is_not_read_again_and_still_stops_its_run() -> None:
    of = of_shop(changes(stop=True), stage("look", agent()))
    s = start({})
    first = await run(s, of)
    s.resume()
    again = await run(s, of)
    assert s.objects.reads == 1  # type: ignore[attr-defined]
    assert again == first


def _sections(triage: int, changed: int, width: int = 60) -> tuple[Section, Section]:
    line = "x" * width
    return Section(["head"], [line] * triage, ["foot"]), Section(["head"], [line] * changed, ["foot"])


@pytest.mark.parametrize(("most", "left_out"), [(99, 1), (100, 0), (101, 0)])
def test_a_section_that_fits_is_whole_and_another_says_what_is_left_out(most: int, left_out: int) -> None:
    section = Section(["h" * 9], ["i" * 39, "j" * 39], ["f" * 9])  # 10 + 40 + 40 + 10 bytes with their ends of line
    shown = fitting(section, most)
    assert ("left out" in shown or "more are in the result" in shown) is bool(left_out)
    assert len(shown) < max(most, 100)


@pytest.mark.parametrize("count", [0, 1, 50, 60, 80, 1_000])
def test_never_more_than_the_limit_reaches_a_model(count: int) -> None:
    around = "a" * 600
    shown = shown_sections(*_sections(count, count), around)
    whole = tokens(around + "".join(shown))
    assert whole <= EVIDENCE_TOKENS
    if count <= 50:
        assert all(text.count("x" * 60) == count for text in shown)
    if count >= 80:
        assert whole > EVIDENCE_TOKENS * 0.95, "the room is used"
        assert all("more are in the result on record" in text for text in shown)


async def test_many_signals_reach_the_model_within_the_limit_and_the_record_in_full() -> None:
    pods = [
        pod(f"p{n}", waiting("ErrImagePull", f"{QUOTE} {n}"), of=template(labels={"n": str(n)})) for n in range(300)
    ]
    s = start({"triage": [Answer("done")]}, cluster(*pods))
    await run(s, of_shop(changes(), stage("look", agent())), "the shop is down")
    told = s.models.requests[0].messages[-1].content
    end = "<!-- TOOL_RESULT_END -->"
    evidence = told[told.index("Computed from the objects") : told.rindex(end) + len(end)]
    assert EVIDENCE_TOKENS * 0.5 < tokens(evidence) <= EVIDENCE_TOKENS
    triage = next(c for c in s.record.tool_calls.values() if c.start.tool == "triage")
    assert triage.answered is not None and all(f"not found {n}" in triage.answered for n in range(300))
