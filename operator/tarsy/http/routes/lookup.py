"""Looks up the record that a path names.

Decision: the lookup uses the name and the current uid of the namespace, so it never finds a record of a deleted
namespace of the same name. The permission was checked before, so "not found" reveals nothing to an unauthorized caller.
"""

from uuid import UUID

from tarsy.http.errors import NotFound
from tarsy.http.route import CheckedRequest
from tarsy.http.routes.parameters import RunQuery
from tarsy.record.run import InvestigationRecord
from tarsy.store.reading.trace import Trace


async def located(ask: CheckedRequest, uid: UUID | None = None) -> UUID:
    """Returns the id of the investigation in the path.

    Raises:
        NotFound: the record has no investigation of this name and uid.
    """
    run = await Trace(ask.services.pool).locate(ask.namespace, ask.name, ask.namespace_uid, uid)
    if run is None:
        which = f"investigation {ask.namespace}/{ask.name}" + (f" with uid {uid}" if uid else "")
        raise NotFound(f"there is no record of {which}; an investigation has a record once it is accepted")
    return run


async def find_run(ask: CheckedRequest, query: RunQuery) -> InvestigationRecord:
    """Returns the record of the investigation in the path, or of the answer that the query names.

    Raises:
        NotFound: there is no such record.
    """
    run = await located(ask, query.uid)
    if query.chat_message is not None:
        answer = await Trace(ask.services.pool).answer_named(run, query.chat_message)
        if answer is None:
            raise NotFound(f"investigation {ask.namespace}/{ask.name} has no answer to a question {query.chat_message}")
        run = answer
    record = await ask.services.reads.record(run)
    if record is None:
        raise NotFound(f"the record of investigation {ask.namespace}/{ask.name} has just been deleted")
    return record
