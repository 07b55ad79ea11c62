"""Reads texts of skills and runbooks from Git, once for each pinned commit.

Watches: nothing of its own. Decides: whether the host of a repository is allowed, each time. Writes: what was read,
into the database. A file that was not read yet is read in the background (`GitCases`), which queues the object again.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.inputs import NotYet
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import GitFilePlan
from tarsy.plan.skills import text_digest
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.store.git_texts import GitText

ReadGitText = Callable[[GitSource | GitFilePlan, FieldPath, int], Awaitable[GitText]]
"""Reads a text from Git; takes the file, the field that names it, and the maximum bytes. Raises NotYet."""


def git_texts(key: Key, context: ReconcileContext) -> ReadGitText:
    """Returns the reader for one object.

    Args:
        key: of the object that is queued when a file was read.
        context: of the reconcile.
    """
    return partial(_read, key, context)


async def _read(
    key: Key, context: ReconcileContext, source: GitSource | GitFilePlan, at: FieldPath, limit: int
) -> GitText:
    where = FieldPath(at.kind, at.namespace, at.name, "").error("")
    prefix = f"{where.kind} {where.namespace}/{where.name}"
    place = GitSource(url=source.url, commit=source.commit, path=source.path)
    store = context.store.git_texts
    if store is None:
        raise NotYet("GitUnavailable", f"{prefix}: {at.path}.url: this operator reads no Git repositories")
    try:
        context.git_cases.check(place, at)
        known = await store.find(source.url, source.commit, source.path)
        if known is not None:
            return known
        content = context.git_cases.take(key, place, at)
    except NotYet as refusal:
        raise NotYet(refusal.reason, f"{prefix}: {refusal.message}") from None
    problem = _fault(content, limit)
    if problem is not None:
        context.git_cases.refuse(place, at, problem[0], f".path: {problem[1]}")
        raise NotYet(problem[0], f"{prefix}: {at.path}.path: {problem[1]}")
    text = content.decode("utf-8-sig")
    found = GitText(text, text_digest(text))
    await store.keep(source.url, source.commit, source.path, found)
    return found


def _fault(content: bytes, limit: int) -> tuple[str, str] | None:
    """Returns reason and message of what is wrong with a file; None: nothing."""
    if len(content) > limit:
        return "GitTooLarge", f"the file has more than {limit} bytes; shorten it"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return "GitTextInvalid", f"byte {error.start} of the file is no UTF-8; save it as UTF-8"
    return None if text.strip() else ("GitTextInvalid", "the file is empty; name another one")
