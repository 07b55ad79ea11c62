"""Reads the recorded history of a namespace with the rights of a caller: of the kinds that they may get.

Decision: the right to list a kind is not enough. The history tells of single objects, and of deleted ones.
"""

from datetime import UTC, datetime

from tarsy.evidence.history.kinds import RECORDED_KINDS
from tarsy.evidence.history.recorded import ONSET_BEFORE_ALERT, RecordedHistory, recorded_history
from tarsy.evidence.reading import ReadKind, allowed_kinds
from tarsy.evidence.snapshot import Gap
from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.route import CheckedRequest
from tarsy.store.errors import StoreError


async def history_for(ask: CheckedRequest, namespace: str, since: datetime) -> RecordedHistory:
    """Returns what is recorded of a namespace, as far as the caller may read it.

    Args:
        ask: the request.
        namespace: the namespace.
        since: start of the window of changes; the history of a day before it is read, for failures that began earlier.

    Raises:
        Unavailable: the Kubernetes API could not say what the caller may read.
    """
    history = ask.services.history
    if history is None:
        return RecordedHistory()
    try:
        uid = await ask.services.namespaces.uid(namespace)
        if not await history.has_watches(uid):
            return RecordedHistory()
        kinds, now = await _kinds_to_get(ask, namespace), datetime.now(UTC)
        versions = await history.changes(uid, kinds, since - ONSET_BEFORE_ALERT, now)
        return recorded_history(
            namespace, versions, await history.unwatched(uid, kinds, since - ONSET_BEFORE_ALERT, now)
        )
    except NotFound:
        return RecordedHistory()
    except StoreError:
        return RecordedHistory(gaps=[Gap("history", namespace, "the record cannot be read now")])


async def _kinds_to_get(ask: CheckedRequest, namespace: str) -> list[str]:
    async def allowed(kind: ReadKind) -> bool:
        permission = Permission("get", kind.plural, group=kind.api_group)
        return await ask.services.access.allowed(ask.caller, permission, namespace)

    return [kind.kind for kind in await allowed_kinds(RECORDED_KINDS, allowed)]
