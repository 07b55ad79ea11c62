"""Reads the objects of a run's namespace for its stages of kind Changes, with two rights at once.

The request is made with a token of the stage's ServiceAccount, so the Kubernetes API decides for it; and only kinds are
asked for that the reader of the run may list, as the active controller found at acceptance. This process' own rights
read nothing here. The tokens are those that agents act with (`service_account_tokens`): bound to the run's Secret.
"""

from datetime import UTC, datetime
from uuid import UUID

from tarsy.engine.conversation.masking import Mask
from tarsy.engine.ports import NotRead
from tarsy.evidence.history.kinds import RECORDED_KINDS
from tarsy.evidence.history.recorded import RecordedHistory, recorded_history
from tarsy.evidence.reading import KINDS, CannotRead, ReadKind, allowed_kinds, read_snapshot
from tarsy.evidence.snapshot import Gap, Snapshot
from tarsy.kube.access import ResourceAttributes, caller_may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lists import with_token
from tarsy.masking import Maskers, without_secrets_or_withheld
from tarsy.mcp.errors import OpenFailed
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.plan.model import ChangesPlan, MaskingPlan
from tarsy.runtime.approving.examination import CallExaminer
from tarsy.runtime.approving.reading import TargetReader
from tarsy.runtime.service_account_tokens import RunTokens
from tarsy.store.history.object_history import ObjectHistory

_WITHHELD = "[withheld: it could not be searched for secrets]"
_NOT_THE_READERS = "may not be listed"


class RunObjects:
    """Reads for one run (`tarsy.engine.ports.ObjectReader`).

    Args:
        client: the Kubernetes API without an identity.
        tokens: of the run.
        mask: removes secrets from texts of objects; raises what it likes where it cannot.
        run: uid of the Investigation.
        history: the recorded changes of objects; None: there are none.
    """

    def __init__(
        self, client: KubeClient, tokens: RunTokens, mask: Mask, run: UUID, history: ObjectHistory | None
    ) -> None:
        self._client = client
        self._run = run
        self._history = history
        self._tokens = tokens
        self._mask = mask

    def without_secrets(self, text: str) -> str:
        """Removes secrets from a text of an object; withholds one that cannot be searched."""
        return without_secrets_or_withheld(self._mask, text, "a text of an object", _WITHHELD).text

    async def read(self, changes: ChangesPlan) -> Snapshot | NotRead:
        """Reads the kinds that the reader may list, as the stage's ServiceAccount, or says why nothing is read."""
        if changes.account is None:
            return NotRead("the stage names no ServiceAccount", refused=True)
        allowed = [kind for kind in KINDS if changes.readable is None or kind.kind in changes.readable]
        try:
            token = await self._tokens.for_cluster(changes.account)
        except OpenFailed as failed:
            return NotRead(failed.sentence, refused=True)
        client, namespace = self._client.bearing(token.text), self._tokens.namespace

        try:
            found = await read_snapshot(with_token(client), namespace, datetime.now(UTC), allowed)
        except CannotRead as error:
            return NotRead(f"the objects of namespace {namespace} could not be read: {error}")
        hidden = [
            Gap(kind.kind, namespace if kind.namespaced else "", _NOT_THE_READERS)
            for kind in KINDS
            if kind not in allowed and not kind.optional
        ]
        return Snapshot(found.read_at, found.objects, found.listed, [*found.gaps, *hidden])

    async def history(self, changes: ChangesPlan, since: datetime) -> RecordedHistory:
        """Reads what is recorded of kinds that the stage's ServiceAccount and its reader both may get."""
        if self._history is None or changes.account is None:
            return RecordedHistory()
        uid = await self._history.namespace_of_run(self._run)
        if uid is None:
            return RecordedHistory()
        namespace = self._tokens.namespace
        try:
            token = await self._tokens.for_cluster(changes.account)
            kinds = await self._kinds_to_get(changes, self._client.bearing(token.text))
        except (OpenFailed, ApiError):
            return RecordedHistory(gaps=[Gap("history", namespace, "it is not known whether it may be read")])
        now = datetime.now(UTC)
        versions = await self._history.changes(uid, kinds, since, now)
        return recorded_history(namespace, versions, await self._history.unwatched(uid, kinds, since, now))

    async def _kinds_to_get(self, changes: ChangesPlan, client: KubeClient) -> list[str]:
        """The recorded kinds that the owner of the client and the reader may get."""

        async def ask(kind: ReadKind) -> bool:
            what = ResourceAttributes("get", kind.api_group, kind.plural, namespace=self._tokens.namespace)
            return await caller_may(client, what)

        asked = [one for one in RECORDED_KINDS if changes.recorded is None or one.kind in changes.recorded]
        return [kind.kind for kind in await allowed_kinds(asked, ask)]


class ClusterObjects:
    """Makes the readers of runs.

    Args:
        client: the Kubernetes API; its identity requests the tokens, and reads nothing.
        nobody: the same API without an identity.
        mask: removes secrets from texts of objects.
        library: the library's namespace.
        history: the recorded changes of objects; None: there are none.
    """

    def __init__(
        self,
        client: KubeClient,
        nobody: KubeClient,
        mask: Mask,
        library: str = LIBRARY_NAMESPACE,
        history: ObjectHistory | None = None,
    ) -> None:
        self._history = history
        self._maskers = Maskers()
        self._client = client
        self._nobody = nobody
        self._mask = mask
        self._library = library

    def of_run(self, run: UUID, namespace: str) -> RunObjects:
        """Returns what reads for a run.

        Args:
            run: uid of the Investigation.
            namespace: its namespace.
        """
        tokens = RunTokens(self._client, run, namespace, self._library)
        return RunObjects(self._nobody, tokens, self._mask, run, self._history)

    def examiner_of_run(self, run: UUID, namespace: str) -> CallExaminer:
        """Returns what examines the calls of a run that need approval.

        Args:
            run: uid of the Investigation or ChatMessage.
            namespace: its namespace.
        """
        tokens = RunTokens(self._client, run, namespace, self._library)
        return CallExaminer(TargetReader(self._nobody, tokens).read, self._mask_of)

    def _mask_of(self, setting: MaskingPlan) -> Mask:
        """Returns the mask of objects with the patterns of a server after it."""
        return lambda text: self._maskers.of(setting)(self._mask(text))
