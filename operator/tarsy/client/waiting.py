"""Waits until the operator accepts, rejects or finishes an object.

Decision: a temporary rejection is reported after some seconds, because a Chain that was applied just before may not be
visible yet; a final one is reported immediately. An object without any status is not waited for long.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from tarsy.client.api import TarsyClient, status_condition
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line

_T = TypeVar("_T")
REFUSED_SECONDS = 5.0
UNSEEN_SECONDS = 60.0
_SAID = 600


async def until_taken(
    client: TarsyClient,
    kind: str,
    namespace: str,
    name: str,
    look: Callable[[Mapping[str, Any]], _T | None],
    about: str | None = None,
) -> _T:
    """Watches an object until `look` returns a value for one of its states; returns that value.

    Args:
        client: the API.
        kind: Alert, Investigation or ChatMessage.
        namespace: of the object.
        name: of the object.
        look: returns None to continue.
        about: the investigation that a ChatMessage is about.

    Raises:
        ApiUseError: the object was rejected or deleted, or the operator does not react.
    """
    which = f"{kind} {namespace}/{name}"
    clock = asyncio.get_running_loop().time
    refusal, seen = "", ""

    def settled(obj: Mapping[str, Any]) -> _T | None:
        nonlocal refusal, seen
        if (found := look(obj)) is not None:
            return found
        before, seen = seen, status_condition(obj, "Accepted") or "Unknown"
        if seen == "False" and status_condition(obj, "Finished") == "True":
            raise ApiUseError(f"{which} was refused: {_why(obj)}")
        refusal = _why(obj) if seen == "False" else ""
        if seen != before:  # to look again is no reason to wait longer; one that is taken has limits of its own
            seconds = {"True": None, "False": REFUSED_SECONDS}.get(seen, UNSEEN_SECONDS)
            limit.reschedule(None if seconds is None else clock() + seconds)
        return None

    try:
        async with asyncio.timeout(UNSEEN_SECONDS) as limit:
            return await client.until(kind, namespace, name, settled, about)
    except TimeoutError:
        if not limit.expired():
            raise
    if refusal:
        raise ApiUseError(f"{which} waits: {refusal}; it continues when that is corrected")
    raise ApiUseError(f"the operator has not handled {which} within {UNSEEN_SECONDS:g} s; is it running?")


async def accepted(client: TarsyClient, namespace: str, name: str) -> None:
    """Returns when an investigation is on record, or its object is deleted, because its record may still exist.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.

    Raises:
        ApiUseError: the investigation was rejected.
    """

    def look(obj: Mapping[str, Any]) -> bool | None:
        return True if "record" in (obj.get("status") or {}) else None

    try:
        await until_taken(client, "Investigation", namespace, name, look)
    except ApiUseError as error:
        if error.status != 404:
            raise


@contextlib.contextmanager
def goes_on(*sentences: str) -> Iterator[None]:
    """Prints what continues without the command, when it is interrupted."""
    try:
        yield
    except asyncio.CancelledError:
        sys.stderr.write("\n" + "\n".join(sentences) + "\n")
        raise


def investigation_goes_on(namespace: str, name: str) -> str:
    """Returns the sentence for `goes_on` of an investigation."""
    return (
        f"investigation {namespace}/{name} continues: follow it with `timeline {name} -n {namespace} -f`, "
        f"stop it with `cancel {name} -n {namespace}`"
    )


def _why(obj: Mapping[str, Any]) -> str:
    reason, message = status_condition(obj, "Accepted", "reason"), status_condition(obj, "Accepted", "message")
    return one_line(f"{message} ({reason})" if message else reason or "no reason is given", _SAID).rstrip(".")
