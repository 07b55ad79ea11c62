"""Copies the recordings of an EvalSuite's cases into the database.

Watches: nothing of its own. Decides: whether the author of the suite may read the source of a case, and whether it can
be used. Writes: the masked recording. A case whose source has not changed in the spec is not copied again, whatever has
become of the source.
"""

import asyncio
from uuid import UUID

from tarsy.controllers.evals.ports import EvalPorts
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.authorization import RequiredRead, authorization_refusal, trace_read
from tarsy.controllers.runs.inputs import NotYet, config_map_bytes
from tarsy.evals.cases import masked_recording, recording_digest
from tarsy.evals.cassette import Cassette, CassetteError, read_cassette
from tarsy.kube.access import ResourceAttributes
from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1 import EvalSuite
from tarsy.resources.v1alpha1.eval_suite import CaseSource, EvalCase
from tarsy.store.evals import NewCase

MAX_CONFIG_MAP_BYTES = 1_048_576


async def store_case(
    suite: EvalSuite, case: EvalCase, namespace_uid: str, ports: EvalPorts, context: ReconcileContext
) -> str:
    """Copies the recording of a case, and returns its digest.

    Args:
        suite: the suite.
        case: one of its cases.
        namespace_uid: uid of the suite's namespace.
        ports: lead to the records.
        context: of the reconcile.

    Raises:
        NotYet: the source cannot be read or used.
    """
    at = FieldPath.of(suite) / "cases"
    place = at[[one.name for one in suite.spec.cases].index(case.name)] / "source"
    cassette = await _read(suite, case.source, place, namespace_uid, ports, context)
    try:
        recording = await asyncio.to_thread(masked_recording, cassette, context.mask)
    except CassetteError as error:
        raise NotYet("RecordingInvalid", f"{_said(place)}: {error}") from error
    digest = recording_digest(recording)
    new = NewCase(
        suite=UUID(suite.metadata.uid),
        name=case.name,
        digest=digest,
        namespace=suite.metadata.namespace,
        namespace_uid=namespace_uid,
        source=case.source.to_dict(),
        cassette=recording,
    )
    await ports.evals.put_case(new)
    return digest


def source_read(source: CaseSource, at: FieldPath) -> RequiredRead:
    """Returns the read that the author needs for the source of a case in field `at`."""
    if source.investigation_ref is not None:
        return trace_read(source.investigation_ref.name, at / "investigationRef" / "name")
    name = source.config_map_key_ref.name if source.config_map_key_ref is not None else ""
    what = ResourceAttributes("get", "", "configmaps", namespace=at.namespace, name=name)
    return RequiredRead(what, "ConfigMap", _said(at / "configMapKeyRef"))


async def _read(
    suite: EvalSuite,
    source: CaseSource,
    at: FieldPath,
    namespace_uid: str,
    ports: EvalPorts,
    context: ReconcileContext,
) -> Cassette:
    refused = await authorization_refusal(
        suite.spec.author,
        (),
        context.kubernetes.client,
        required=context.settings.require_author,
        reads=[source_read(source, at)],
    )
    if refused is not None:
        raise NotYet(*refused)
    if source.config_map_key_ref is not None:
        content = await config_map_bytes(source.config_map_key_ref, at, MAX_CONFIG_MAP_BYTES, context.kubernetes.client)
        name = f"ConfigMap {at.namespace}/{source.config_map_key_ref.name}, {source.config_map_key_ref.key}"
        try:
            return await asyncio.to_thread(read_cassette, content, name)
        except CassetteError as error:
            raise NotYet("RecordingInvalid", f"{_said(at)}: {error}") from error
    return await _recorded(source, at, namespace_uid, ports, context)


async def _recorded(
    source: CaseSource, at: FieldPath, namespace_uid: str, ports: EvalPorts, context: ReconcileContext
) -> Cassette:
    """Makes a cassette of a record; the Investigation itself may be gone."""
    ref = source.investigation_ref
    assert ref is not None  # the kind's rules ask for exactly one source
    where = f"{_said(at / 'investigationRef' / 'name')}: Investigation {at.namespace}/{ref.name}"
    record = await context.store.reads.find(at.namespace, ref.name, namespace_uid)
    if record is None or (ref.uid is not None and record.id != UUID(ref.uid)):
        raise NotYet("RecordMissing", f"{where} has no record; name a finished Investigation, or use a cassette")
    if not record.state.finished:
        raise NotYet("InvestigationNotFinished", f"{where} has not finished; its record is copied when it has")
    try:
        return await ports.cassette_of(record.id)
    except CassetteError as error:
        raise NotYet("RecordingInvalid", f"{where}: {error}") from error


def _said(at: FieldPath) -> str:
    error = at.error("")
    return error.field
