"""Runs the scenarios: the engine, the library and the Kubernetes tools over recorded objects, in one process.

Only the model is scripted, behind the wire that a real one has. Decision: ids come from the scenario, and the clock
stands at the time of the incident, so that a second run writes the same pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from hack.components import CHECKOUT
from hack.gallery.scenario import Scenario

from tarsy.cli.evals.plans import Configuration, plan_cases
from tarsy.cli.plans.files import Manifests, read_files
from tarsy.engine.investigation import InvestigationRun, investigate
from tarsy.engine.run_context import RunContext
from tarsy.evals.cassette import AlertRecord, Cassette, Header
from tarsy.evals.suite import Suite, SuiteCase, expectation_of
from tarsy.http.views.timeline import EventView, FindingView, RunHead
from tarsy.http.views.trace import Owner, ToolCallDetails
from tarsy.llm.registry import ModelRegistry
from tarsy.masking import Maskers
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.plan.model import MaskingPlan, Plan, SecretKey
from tarsy.record.history import RunHistory
from tarsy.record.ids import call_ref
from tarsy.record.run import DesiredState, RunOutcome
from tarsy.resources.v1alpha1 import LLMProvider
from tarsy.runtime.in_process.record import Record
from tarsy.runtime.in_process.recorder import MemoryRecorder
from tarsy.runtime.in_process.sample import UncontrolledRun
from tarsy_dev.incidents.cases import planned, truth_of
from tarsy_dev.model import ScriptedModel

_LIBRARY = CHECKOUT / "manifests" / "library"
RATES = {"inputPerMillion": 1.25, "outputPerMillion": 10.0}


@dataclass(frozen=True, slots=True)
class Played:
    """A finished investigation of the gallery, as the API would return it.

    Attributes:
        scenario: what was played.
        head: state and finding.
        events: the timeline, in the order of stages, agents and steps.
        calls: tool calls with arguments and results, by id.
        used: model calls and tokens.
        model_calls: number of calls of a model.
        cost: in US dollars, by the example rates.
        plan: of the run.
        record: of the run.
    """

    scenario: Scenario
    head: RunHead
    events: Sequence[EventView]
    calls: Mapping[UUID, ToolCallDetails]
    used: RunHistory
    model_calls: int
    cost: Decimal
    plan: Plan
    record: Record


async def play(scenario: Scenario) -> Played:
    """Runs a scenario to its end."""
    maskers, run = Maskers(), uuid5(NAMESPACE_URL, f"tarsy-gallery/{scenario.name}")
    async with ScriptedModel(scenario.script) as model:
        plan, case = _plan(scenario, model.base_url)
        one = planned(scenario.incident, case, plan, maskers)
        assert one.objects is not None
        assert one.tools is not None
        record = Record(began=scenario.incident.read_at)
        recorder, models = MemoryRecorder(record), ModelRegistry(_no_secret)
        try:
            world = RunContext(
                recorder,
                models,
                one.tools,
                UncontrolledRun(),
                mask=maskers.of(plan.model_output_masking or MaskingPlan()),
                objects=one.objects,
            )
            outcome = await investigate(InvestigationRun(run, plan, scenario.alert, ""), world)
        finally:
            await models.aclose()
        return _played(scenario, run, plan, record, outcome, await recorder.history())


@cache
def _library() -> Manifests:
    return read_files([_LIBRARY], LIBRARY_NAMESPACE)


def _plan(scenario: Scenario, base_url: str) -> tuple[Plan, SuiteCase]:
    spec = {
        "type": "openai",
        "model": "scripted",
        "baseURL": base_url,
        "rates": RATES,
        "allowedNamespaces": {"from": "All"},
    }
    identity = (LLMProvider.KIND, LIBRARY_NAMESPACE, "default")
    meta = {"name": identity[2], "namespace": LIBRARY_NAMESPACE}
    provider = LLMProvider.model_validate(
        {"apiVersion": "tarsy.dev/v1alpha1", "kind": LLMProvider.KIND, "metadata": meta, "spec": spec}
    )
    library = _library()
    manifests = replace(
        library,
        objects={**library.objects, identity: provider},
        files={**library.files, identity: "the model of the gallery"},
    )
    incident = scenario.incident
    header = Header(alert=AlertRecord(type=scenario.alert_type, data=scenario.alert), now=incident.read_at)
    case = SuiteCase(scenario.name, Cassette(header), expectation_of(truth_of(incident)))
    configuration = Configuration([_LIBRARY], incident.namespace, LIBRARY_NAMESPACE, scenario.chain)
    found = plan_cases(Suite((case,)), configuration, manifests)
    if found.problems:
        raise SystemExit("\n".join(found.problems))
    return found.cases[0].plan, case


def _played(scenario: Scenario, run: UUID, plan: Plan, record: Record, outcome: RunOutcome, used: RunHistory) -> Played:
    began = scenario.incident.read_at
    places = {
        row.start.id: (record.stages[row.start.stage].start.index, row.start.index)
        for row in record.executions.values()
    }
    stages = {row.start.id: row.start.index for row in record.stages.values()}

    def place(event: Any) -> tuple[int, int, int]:
        if event.execution is not None:
            return (*places[event.execution], event.seq)
        return (stages[event.stage] if event.stage else len(stages), len(places), event.seq)

    events = []
    for number, event in enumerate(sorted(record.events.values(), key=place), 1):
        stage = record.stages.get(event.stage) if event.stage else None
        agent = record.executions.get(event.execution) if event.execution else None
        view = EventView.of(event)
        events.append(
            view.model_copy(
                update={
                    "seq": number,
                    "revision": number,
                    "stage": stage.start.name if stage else None,
                    "agent": agent.start.display_name if agent else None,
                    "created_at": began,
                    "updated_at": began,
                }
            )
        )
    calls = {}
    for row in record.tool_calls.values():
        agent = record.executions[row.start.execution]
        calls[row.start.id] = ToolCallDetails(
            id=row.start.id,
            state=row.state,
            started_at=began,
            finished_at=began,
            duration_ms=0,
            server=row.start.server,
            tool=row.start.tool,
            ref=call_ref(row.start.idempotency_key),
            attempt=row.start.attempt,
            made=row.start.made,
            repeated_of=row.start.repeated_of,
            refused=row.start.refused,
            access=row.start.access,
            owner=Owner(
                stage=record.stages[agent.start.stage].start.name,
                agent=agent.start.display_name,
                execution=agent.start.id,
                chat_message=None,
            ),
            call_id=row.start.call.id,
            arguments=row.start.call.arguments,
            result=row.answered,
            idempotency_key=row.start.idempotency_key,
            repeatable=row.start.repeatable,
            tries=(row.start.id,),
        )
    head = RunHead(
        namespace=scenario.incident.namespace,
        name=scenario.name,
        uid=run,
        state=outcome.state,
        desired_state=DesiredState.RUNNING,
        revision=len(events),
        attempt=1,
        alert_type=scenario.alert_type,
        chain=plan.chain.name,
        started_at=began,
        finished_at=None,
        finding=FindingView.of(outcome.finding),
        final_analysis=outcome.final_analysis,
        executive_summary=outcome.executive_summary,
        failure=None,
    )
    return Played(scenario, head, events, calls, used, len(record.model_calls), used.cost_usd, plan, record)


async def _no_secret(key: SecretKey) -> str:
    raise LookupError(f"the model of the gallery has no Secret, and {key.name} was asked for")
