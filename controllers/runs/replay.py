"""Accepts replays: reads the record that one answers from, and makes its plan.

Watches: nothing of its own. Decides: whether the author may read the trace of the recorded run, or the ConfigMap with
the cassette; whether the recorded results may go to the providers of the replay. Writes: nothing; the record is frozen
with the plan, so neither retention nor a change of the ConfigMap alters a replay.
"""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.lookup import look_up
from tarsy.controllers.runs.authorization import RequiredRead, trace_read
from tarsy.controllers.runs.inputs import NotYet, find_config_map
from tarsy.engine.findings.conclusion import read_finding
from tarsy.evals.cassette import Cassette, CassetteError, read_cassette, write_cassette
from tarsy.evals.recording import cassette_of
from tarsy.kube.access import ResourceAttributes
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import Plan, ReplayPlan
from tarsy.plan.reach import read_plan
from tarsy.plan.what_if import strange_providers
from tarsy.resources.v1alpha1 import Alert, Investigation, LLMProvider
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import ConfigMapKeyRef, NameRef, ObjectRef
from tarsy.resources.v1alpha1.eval_suite import CaseSource
from tarsy.resources.v1alpha1.investigation import EvalCaseRef, Replay
from tarsy.store.judging.eval_rows import StoredRecording
from tarsy.store.judging.replays import ReplaySource

_RECORDED = "(recorded)"
"""Stands for the text of the alert where a plan is made: a plan does not depend on it."""


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """Holds the recorded input of a replay.

    `alert` decides the plan; `chain` is the recorded one (None: not known). `source` is the plan of the recorded run,
    None for a cassette, whose texts are masked again. `of` is the recorded run itself; None: a file, or a case that its
    suite keeps.
    """

    cassette: Cassette
    alert: AlertContent
    chain: str | None
    source: Plan | None
    name: str
    of: UUID | None = None

    @property
    def data(self) -> bytes:
        """The cassette as it is frozen."""
        return write_cassette(self.cassette)

    def plan(self, plan: Plan, replay: Replay) -> Plan:
        """Returns the plan of the replay.

        Args:
            plan: as a usual run has it.
            replay: the request.
        """
        on_miss = replay.on_miss or "Refuse"
        made = plan.replaying(ReplayPlan(source=self.name, of=self.of, on_miss=on_miss, seed=replay.seed))
        reader = None if self.source is None else next((s.changes for s in self.source.stages if s.changes), None)
        if reader is None or reader.reader is None:
            return made
        return made.read_as(reader.reader, reader.readable or (), reader.recorded or ())


async def required_reads(
    investigation: Investigation, replay: Replay, context: ReconcileContext
) -> Sequence[RequiredRead]:
    """Returns the reads that the author of a replay needs; those of a stored case are the ones of its source.

    Args:
        investigation: the replay.
        replay: its request.
        context: of the reconcile.

    Raises:
        NotYet: the case is not stored.
    """
    at, namespace = FieldPath.of(investigation) / "replay", investigation.metadata.namespace
    if replay.eval_case is not None:
        found = await _stored(replay.eval_case, at / "evalCase", context)
        return source_reads(CaseSource.model_validate(found.source), at / "evalCase" / "name")
    if replay.of is not None:
        return (trace_read(replay.of.name, at / "of" / "name"),)
    name = replay.cassette_ref.name if replay.cassette_ref else ""
    what = ResourceAttributes("get", "", "configmaps", namespace=namespace, name=name)
    return (RequiredRead(what, "ConfigMap", f"{at.path}.cassetteRef.name"),)


def provider_key(replay: Replay, chain_namespace: str) -> Key | None:
    """Returns the LLMProvider that a replay brings, which its author must be allowed to use; None: it brings none."""
    if (override := provider_override(replay)) is None:
        return None
    return Key(LLMProvider.KIND, chain_namespace, override.name)


def provider_override(replay: Replay) -> NameRef | None:
    """Returns the provider that all agents of a replay use; None: their own."""
    return replay.overrides.llm_provider_ref if replay.overrides else None


def source_reads(source: CaseSource, at: FieldPath) -> Sequence[RequiredRead]:
    """Returns the reads that the source of a case requires, which field `at` names; Git is read as by anybody."""
    if source.git is not None:
        return ()
    if source.investigation_ref is not None:
        return (trace_read(source.investigation_ref.name, at),)
    name = source.config_map_key_ref.name if source.config_map_key_ref is not None else ""
    what = ResourceAttributes("get", "", "configmaps", namespace=at.namespace, name=name)
    return (RequiredRead(what, "ConfigMap", at.path),)


async def recorded_input(investigation: Investigation, replay: Replay, context: ReconcileContext) -> RecordedInput:
    """Reads the record that a replay answers from.

    Args:
        investigation: the replay; its author may read the record.
        replay: its request.
        context: of the reconcile.

    Raises:
        NotYet: it is not there, not finished, or cannot be read.
    """
    at, namespace = FieldPath.of(investigation) / "replay", investigation.metadata.namespace
    if replay.of is not None:
        return await recorded_run(replay.of, namespace, at / "of", context)
    if replay.eval_case is not None:
        return await _of_case(replay.eval_case, at / "evalCase", context)
    assert replay.cassette_ref is not None  # the kind's rules ask for exactly one of them
    data = await config_map_bytes(replay.cassette_ref, at / "cassetteRef", context)
    name = f"ConfigMap {replay.cassette_ref.name}, key {replay.cassette_ref.key}"
    try:
        cassette = await asyncio.to_thread(read_cassette, data, name)
    except CassetteError as error:
        raise NotYet("CassetteInvalid", f"{at.path}.cassetteRef: {error}") from error
    alert = AlertContent(alert_type=cassette.header.alert.type, data=_RECORDED)
    return RecordedInput(cassette, alert, None, None, name)


def check_providers(plan: Plan, recorded: RecordedInput) -> None:
    """Checks that recorded results reach no provider that the recorded run could not have used.

    Raises:
        NotYet: a provider of the replay may not be sent them.
    """
    strange = strange_providers(plan, recorded.source) if recorded.source is not None else []
    if strange:
        home = recorded.source.chain.namespace if recorded.source is not None else ""
        raise NotYet(
            "ProviderNotAllowed",
            f"spec.replay: tools of namespace {home} answered the recorded calls with its rights, so their results may "
            f"only be sent to LLMProviders of that namespace; this replay would send them to {', '.join(strange)}. "
            "Use a chain or a provider of that namespace.",
        )


async def recorded_run(ref: ObjectRef, namespace: str, at: FieldPath, context: ReconcileContext) -> RecordedInput:
    """Reads the record of a finished investigation.

    Args:
        ref: names it.
        namespace: its namespace.
        at: the field that names it.
        context: of the reconcile.

    Raises:
        NotYet: it is not there, not finished, or cannot be replayed.
    """
    store = context.store
    if store.replays is None:
        raise NotYet("ReplayUnavailable", "This operator has no access to records of tool calls.")
    live = await context.kubernetes.client.find("Namespace", None, namespace) or {}
    record = await store.reads.find(namespace, ref.name, live.get("metadata", {}).get("uid"))
    if record is None or (ref.uid is not None and str(record.id) != ref.uid):
        raise NotYet(
            "ReplaySourceMissing",
            f"{at.path}.name: no record of Investigation {namespace}/{ref.name} is in the database; name another",
        )
    found = await store.replays.source(record.id) if record.state.finished else None
    if found is None:
        raise NotYet(
            "ReplaySourceRunning", f"{at.path}.name: Investigation {namespace}/{ref.name} has not finished; wait for it"
        )
    if found.replay:
        raise NotYet(
            "ReplayOfReplay",
            f"{at.path}.name: Investigation {namespace}/{ref.name} is itself a replay; name the recorded one",
        )
    cassette = await asyncio.to_thread(_cassette, found, at)
    alert = await _alert(ref.name, found, context)
    return RecordedInput(cassette, alert, found.run.chain, found.plan, f"Investigation {ref.name}", record.id)


async def _stored(ref: EvalCaseRef, at: FieldPath, context: ReconcileContext) -> StoredRecording:
    evals = context.store.evals
    found = await evals.case(UUID(ref.suite_uid), ref.name, ref.digest) if evals is not None else None
    if found is None or found.namespace != at.namespace:
        text = f"{at.path}: case {ref.name} is not stored; create a new EvalRun, which replays the stored cases"
        raise NotYet("CaseMissing", text)
    return found


async def _of_case(ref: EvalCaseRef, at: FieldPath, context: ReconcileContext) -> RecordedInput:
    """Reads a stored case. A case that was copied from a record keeps the limits of where that may be sent."""
    found = await _stored(ref, at, context)
    name = f"case {ref.name}"
    cassette = await asyncio.to_thread(read_cassette, found.cassette, name)
    alert = AlertContent(alert_type=cassette.header.alert.type, data=_RECORDED)
    source = read_plan(found.plan) if found.plan is not None else None
    return RecordedInput(cassette, alert, None, source, name)


def _cassette(found: ReplaySource, at: FieldPath) -> Cassette:
    cassette = cassette_of(found.run, lambda text: read_finding(text)[0])
    try:
        write_cassette(cassette)
    except CassetteError as error:
        raise NotYet("CassetteTooLarge", f"{at.path}: {error}") from error
    return cassette


async def _alert(name: str, found: ReplaySource, context: ReconcileContext) -> AlertContent:
    """Returns the recorded alert; its own choice of tools is that of the object, where it still exists."""
    run, cache, client = found.run, context.cache, context.kubernetes.client
    source = await look_up(Investigation, run.namespace, name, cache, client, uid=str(run.id))
    content: AlertContent | None = source.spec.alert if source is not None else None
    if source is not None and (ref := source.spec.alert_ref) is not None:
        alert = await look_up(Alert, run.namespace, ref.name, cache, client, uid=ref.uid)
        content = alert.spec if alert is not None else None
    chosen: dict[str, Any] = {}
    if content is not None:
        chosen = {"mcp_servers": content.mcp_servers, "native_tools": content.native_tools}
    return AlertContent(alert_type=run.alert_type, data=_RECORDED, **chosen)


async def config_map_bytes(ref: ConfigMapKeyRef, at: FieldPath, context: ReconcileContext) -> bytes:
    """Reads a key of a ConfigMap, in data or binaryData.

    Args:
        ref: names the key.
        at: the field that names it.
        context: of the reconcile.

    Raises:
        NotYet: it is not there, or cannot be read.
    """
    where = f"{at.path}: ConfigMap {at.namespace}/{ref.name}"
    found = await find_config_map(at.namespace, ref.name, where, context.kubernetes.client)
    packed, text = (found.get("binaryData") or {}).get(ref.key), (found.get("data") or {}).get(ref.key)
    if packed is None and text is None:
        raise NotYet("ConfigMapKeyMissing", f"{where} has no key {ref.key} under data or binaryData; add it")
    try:
        return str(text).encode() if packed is None else base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NotYet("CassetteInvalid", f"{where}: key {ref.key} is no base64; create the ConfigMap again") from error
