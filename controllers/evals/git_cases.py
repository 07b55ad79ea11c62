"""Reads the files that objects name in Git (cases of EvalSuites, Skills, runbooks), in the background.

Watches: nothing of its own. Decides: which files are read, a few at a time, and how long a failure is kept. Writes:
nothing; an object whose file was read is queued, and takes it. Namespaces have their turns.

Decision: a reconcile never waits for a foreign host, as with runbooks. A file is found by repository, commit and path:
a pinned commit cannot change, so what was read for one object is right for another of the same namespace.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.fair_queue import FairQueue
from tarsy.controllers.runs.inputs import NotYet
from tarsy.git.source import GitFile, GitProblem, why_not_listed
from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.runtime.git_files import ReadGitFile

_log = logging.getLogger(__name__)

_AT_ONCE = 2
_KEPT = 8
"""Files that are kept until their objects take them: each has up to 16 MiB."""

_FAILURES_KEPT = 1_000
FAILURE_SECONDS = 300.0
"""Seconds for which a failure is kept."""

_Wanted = tuple[str, GitFile]


@dataclass(frozen=True, slots=True)
class _Failure:
    """Holds the problem of a file: the reason, and the message after the field of the source."""

    until: float
    reason: str
    message: str


class GitCases:
    """Reads files of Git repositories for the objects that name them.

    Args:
        read: reads one; None: this operator reads none.
        hosts: the administrator's list (`--git-host`).
        wake: is called with an object's key when its file was read, or could not be.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        read: ReadGitFile | None,
        hosts: tuple[str, ...],
        wake: Callable[[Key], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._hosts = hosts
        self._wake = wake
        self._queue: FairQueue[_Wanted] = FairQueue()
        self._asked: dict[_Wanted, set[Key]] = {}
        self._files: OrderedDict[_Wanted, bytes] = OrderedDict()
        self._clock = clock
        self._failures: OrderedDict[_Wanted, _Failure] = OrderedDict()

    def take(self, key: Key, source: GitSource, at: FieldPath) -> bytes:
        """Returns the content of a file, once it was read.

        Args:
            key: of the object.
            source: the file.
            at: the field that names it.

        Raises:
            NotYet: it is being read, or cannot be read.
        """
        file = self.check(source, at)
        wanted = (at.namespace, file)
        if (content := self._files.pop(wanted, None)) is not None:
            return content
        failed = self._failures.get(wanted)
        if failed is not None and failed.until > self._clock():
            raise NotYet(failed.reason, f"{at.path}{failed.message}")
        if wanted not in self._asked:
            self._asked[wanted] = set()
            self._queue.put(at.namespace, wanted)
        self._asked[wanted].add(key)
        raise NotYet("GitFetching", f"{at.path}: {source.path} of commit {source.commit[:12]} is being read")

    def check(self, source: GitSource, at: FieldPath) -> GitFile:
        """Returns the file of a source that may be read.

        Args:
            source: the file.
            at: the field that names it.

        Raises:
            NotYet: it may not.
        """
        file = GitFile(source.url, source.commit, source.path)
        try:
            self._check(file)
        except GitProblem as problem:
            raise NotYet(problem.reason, f"{at.path}.{problem.message}") from None
        return file

    def refuse(self, source: GitSource, at: FieldPath, reason: str, message: str) -> None:
        """Keeps what is wrong with the content of a file, so that it is not read again at once.

        Args:
            source: the file.
            at: the field that names it.
            reason: of the condition.
            message: after the field.
        """
        self._fail((at.namespace, GitFile(source.url, source.commit, source.path)), reason, message)

    async def run(self) -> None:
        """Reads until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work())

    def _check(self, file: GitFile) -> None:
        place = file.place()
        file.check()
        if why := why_not_listed(place, self._hosts):
            raise GitProblem("GitHostNotAllowed", f"url: {why}")
        if self._read is None:
            raise GitProblem("GitUnavailable", "url: this operator reads no Git repositories")

    async def _work(self) -> None:
        while True:
            wanted = await self._queue.get()
            try:
                assert self._read is not None
                content = await self._read(wanted[1])
            except GitProblem as problem:
                self._fail(wanted, problem.reason, f".{problem.message}")
            except Exception:
                _log.exception("a file for an object of namespace %s could not be read from Git", wanted[0])
                self._fail(wanted, "GitUnavailable", ".url: the file could not be read; see the operator's log")
            else:
                self._files[wanted] = content
                while len(self._files) > _KEPT:
                    self._files.popitem(last=False)
            for key in self._asked.pop(wanted):
                self._wake(key)

    def _fail(self, wanted: _Wanted, reason: str, message: str) -> None:
        self._failures[wanted] = _Failure(self._clock() + FAILURE_SECONDS, reason, message)
        self._failures.move_to_end(wanted)
        while len(self._failures) > _FAILURES_KEPT:
            self._failures.popitem(last=False)
