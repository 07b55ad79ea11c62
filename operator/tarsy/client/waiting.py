"""Waiting for what the operator makes of an object: accepted, refused, or ended.

Decision: a refusal that can be mended is given some seconds before it is told, because a Chain that was applied just
before may not be seen yet; one that is final is told at once. An object that nobody looks at is not waited for long.
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
    door: TarsyClient,
    kind: str,
    namespace: str,
    name: str,
    look: Callable[[Mapping[str, Any]], _T | None],
    about: str | None = None,
) -> _T:
    """What `look` says of an object, as soon as it says something.

    Raises:
        ApiUseError: the object was refused, is gone, or nobody looks at it.
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
            return await door.until(kind, namespace, name, settled, about)
    except TimeoutError:
        if not limit.expired():
            raise
    if refusal:
        raise ApiUseError(f"{which} waits: {refusal}; it goes on by itself when that is mended")
    raise ApiUseError(f"nobody has looked at {which} in {UNSEEN_SECONDS:g} s: does the operator run?")


async def accepted(door: TarsyClient, namespace: str, name: str) -> None:
    """Returns when an investigation is on record; also when its object is gone, because its record may be there.

    Raises:
        ApiUseError: it was refused.
    """

    def look(obj: Mapping[str, Any]) -> bool | None:
        return True if "record" in (obj.get("status") or {}) else None

    try:
        await until_taken(door, "Investigation", namespace, name, look)
    except ApiUseError as error:
        if error.status != 404:
            raise


@contextlib.contextmanager
def goes_on(*sentences: str) -> Iterator[None]:
    """Tells whoever interrupts the command what goes on without it."""
    try:
        yield
    except asyncio.CancelledError:
        sys.stderr.write("\n" + "\n".join(sentences) + "\n")
        raise


def investigation_goes_on(namespace: str, name: str) -> str:
    """The sentence for `goes_on` of an investigation."""
    return (
        f"investigation {namespace}/{name} goes on: follow it with `timeline {name} -n {namespace} -f`, "
        f"stop it with `cancel {name} -n {namespace}`"
    )


def _why(obj: Mapping[str, Any]) -> str:
    reason, message = status_condition(obj, "Accepted", "reason"), status_condition(obj, "Accepted", "message")
    return one_line(f"{message} ({reason})" if message else reason or "no reason is given", _SAID).rstrip(".")
