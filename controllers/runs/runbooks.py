"""Fetches runbooks by URL in the background.

Decision: a reconcile never waits for a foreign host. It asks here and goes; a few workers fetch, and wake the
Investigation when there is an answer, which is then there to be taken. So slow hosts delay only those that name them.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tarsy.controllers.machinery.cache import Key
from tarsy.kube.client import ApiError
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import SecretKey
from tarsy.runbook.errors import RunbookUnavailable
from tarsy.runbook.fetch import Fetcher, ReadToken
from tarsy.runbook.sources import RunbookSource

_log = logging.getLogger(__name__)

WORKERS = 4
MAX_ANSWERS = 1000
"""Answers kept for whoever asked; of those that nobody took the oldest goes."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Holds a runbook's text, or the problem."""

    text: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    uid: str
    key: Key
    url: str
    among: tuple[RunbookSource, ...]


class Runbooks:
    """Fetches runbooks for Investigations.

    Args:
        fetcher: fetches one.
        hosts: those of the administrator (`--runbook-host`).
        wake: is called with an Investigation's key when its answer is there.
    """

    def __init__(self, fetcher: Fetcher, hosts: tuple[str, ...], wake: Callable[[Key], None]) -> None:
        self.hosts = hosts
        self._fetcher = fetcher
        self._wake = wake
        self._queue: asyncio.Queue[_Wanted] = asyncio.Queue()
        self._asked: set[str] = set()
        self._answers: OrderedDict[str, Fetched] = OrderedDict()

    def take(self, uid: str, key: Key, url: str, among: tuple[RunbookSource, ...]) -> Fetched | None:
        """Returns the result for an Investigation, once; None: it is being fetched, and the key is queued at the end.

        Args:
            uid: of the Investigation.
            key: of the Investigation.
            url: of the runbook.
            among: the allowed hosts, with their tokens.
        """
        answer = self._answers.pop(uid, None)
        if answer is None and uid not in self._asked:
            self._asked.add(uid)
            self._queue.put_nowait(_Wanted(uid, key, url, among))
        return answer

    async def run(self) -> None:
        """Fetches until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            wanted = await self._queue.get()
            try:
                answer = Fetched(await self._fetcher.fetch(wanted.url, wanted.among))
            except RunbookUnavailable as error:
                answer = Fetched(problem=str(error))
            except Exception:
                _log.exception("the runbook of %s could not be fetched", wanted.key)
                answer = Fetched(problem="it could not be fetched; see the operator's log")
            self._asked.discard(wanted.uid)
            self._answers[wanted.uid] = answer
            while len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)
            self._wake(wanted.key)


def token_reader(read_secret: Callable[[SecretKey], Awaitable[str]]) -> ReadToken:
    """Reads tokens from Secrets; one that cannot be read makes its runbook unavailable."""

    async def read(key: SecretKey) -> str:
        try:
            return await read_secret(key)
        except SecretProblem as problem:
            raise RunbookUnavailable(problem.message) from None
        except ApiError as error:
            raise RunbookUnavailable(f"its token could not be read: {error.reason}") from None

    return read
