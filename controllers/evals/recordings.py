"""Copies the recordings of an EvalSuite's cases into the database.

Watches: nothing of its own. Decides: whether the author of the suite may read the source of a case, and whether it can
be used. Writes: the masked recording. A case whose source has not changed in the spec is not copied again, whatever has
become of the source.
"""

import asyncio
from uuid import UUID

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.authorization import authorization_refusal
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.runs.replay import config_map_bytes, recorded_run, source_reads
from tarsy.evals.cases import masked_recording, recording_digest
from tarsy.evals.cassette import Cassette, CassetteError, read_cassette
from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1 import EvalSuite
from tarsy.resources.v1alpha1.eval_suite import CaseSource
from tarsy.store.judging.eval_rows import NewCase
from tarsy.store.judging.evals import Evals


async def store_case(suite: EvalSuite, index: int, namespace_uid: str, evals: Evals, context: ReconcileContext) -> str:
    """Copies the recording of a case, and returns its digest.

    Args:
        suite: the suite.
        index: index of the case in the suite.
        namespace_uid: uid of the suite's namespace.
        evals: the stored cases.
        context: of the reconcile.

    Raises:
        NotYet: the source cannot be read or used.
    """
    case, at = suite.spec.cases[index], source_field(suite, index)
    refused = await authorization_refusal(
        suite.spec.author,
        (),
        context.kubernetes.client,
        required=context.settings.require_author,
        reads=source_reads(case.source, at),
    )
    if refused is not None:
        raise NotYet(*refused)
    cassette, plan = await _read(case.source, at, Key(suite.KIND, at.namespace, suite.metadata.name), context)
    try:
        recording = await asyncio.to_thread(masked_recording, cassette, context.mask)
    except CassetteError as error:
        raise NotYet("CassetteInvalid", f"{at.path}: {error}") from error
    digest = recording_digest(recording)
    new = NewCase(
        suite=UUID(suite.metadata.uid),
        name=case.name,
        digest=digest,
        namespace=suite.metadata.namespace,
        namespace_uid=namespace_uid,
        source=case.source.to_dict(),
        cassette=recording,
        plan=plan,
    )
    await evals.put_case(new)
    return digest


def source_field(suite: EvalSuite, index: int) -> FieldPath:
    """Returns the field that names the source of a case, by the index of the case."""
    at = (FieldPath.of(suite) / "cases")[index] / "source"
    source = suite.spec.cases[index].source
    if source.git is not None:
        return at / "git"
    return at / ("investigationRef" if source.investigation_ref is not None else "configMapKeyRef")


async def _read(
    source: CaseSource, at: FieldPath, suite: Key, context: ReconcileContext
) -> tuple[Cassette, str | None]:
    """Returns the cassette of a source, and the plan of the recorded run, None for a file."""
    if source.investigation_ref is not None:
        found = await recorded_run(source.investigation_ref, at.namespace, at, context)
        return found.cassette, found.source.dump().decode() if found.source is not None else None
    if source.git is not None:
        content = context.git_cases.take(suite, source.git, at)
        name = f"{source.git.path} of commit {source.git.commit[:12]}"
    else:
        assert source.config_map_key_ref is not None  # the kind's rules ask for exactly one source
        content = await config_map_bytes(source.config_map_key_ref, at, context)
        name = f"ConfigMap {source.config_map_key_ref.name}, key {source.config_map_key_ref.key}"
    try:
        return await asyncio.to_thread(read_cassette, content, name), None
    except CassetteError as error:
        if source.git is not None:
            context.git_cases.refuse(source.git, at, "CassetteInvalid", f": {error}")
        raise NotYet("CassetteInvalid", f"{at.path}: {error}") from error
