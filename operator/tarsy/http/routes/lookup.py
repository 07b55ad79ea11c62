"""Finding the record that a path names.

Decision: by name and the uid of the namespace as it is now, so nothing of a deleted namespace of the same name is
found; the permission was asked before, so "not found" tells nobody anything who may not know.
"""

from uuid import UUID

from tarsy.http.errors import NotFound
from tarsy.http.route import Ask
from tarsy.http.routes.parameters import RunQuery
from tarsy.record.run import InvestigationRecord
from tarsy.store.trace import Trace


async def located(ask: Ask, uid: UUID | None = None) -> UUID:
    """The id of the investigation in the path.

    Raises:
        NotFound: nothing of that name is on record, or nothing of that uid.
    """
    run = await Trace(ask.services.pool).locate(ask.namespace, ask.name, ask.namespace_uid, uid)
    if run is None:
        which = f"investigation {ask.namespace}/{ask.name}" + (f" with uid {uid}" if uid else "")
        raise NotFound(f"there is no {which} on record; one that was not accepted yet has none")
    return run


async def run_of(ask: Ask, query: RunQuery) -> InvestigationRecord:
    """The record of the investigation in the path, or of the answer that the query names.

    Raises:
        NotFound: it is not on record.
    """
    run = await located(ask, query.uid)
    if query.chat_message is not None:
        answer = await Trace(ask.services.pool).answer_named(run, query.chat_message)
        if answer is None:
            raise NotFound(
                f"there is no answer to a question {query.chat_message} about investigation {ask.namespace}/{ask.name}"
            )
        run = answer
    record = await ask.services.reads.record(run)
    if record is None:
        raise NotFound(f"the record of investigation {ask.namespace}/{ask.name} has just been deleted")
    return record
