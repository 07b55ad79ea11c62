"""Stores texts of skills and runbooks that were read from Git.

Decision: a file is found by repository, commit and path. A pinned commit cannot change, so a text that was read once is
right for every namespace, and an operator that starts needs no repository for what it has read before.
"""

import hashlib
from typing import Final, NamedTuple

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

GIT_TEXTS_KEPT: Final = 1_000
"""Texts that are kept, those used last."""


class GitText(NamedTuple):
    """A text, and the SHA-256 of its file as hex."""

    content: str
    digest: str


class GitTextStore:
    """Reads and writes texts; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
        kept: texts that are kept.
    """

    def __init__(self, pool: asyncpg.Pool, kept: int = GIT_TEXTS_KEPT) -> None:
        self._pool = pool
        self._kept = kept
        self._sql = load("git_texts")

    async def find(self, url: str, commit: str, path: str) -> GitText | None:
        """Returns a text; None: it was not read yet.

        Args:
            url: of the repository.
            commit: full id.
            path: from the root.
        """
        identity = _identity(url, commit, path)

        async def read(connection: asyncpg.Connection) -> asyncpg.Record | None:
            found = await connection.fetchrow(*self._sql["find_git_text"](id=identity))
            if found is not None:
                await connection.execute(*self._sql["git_text_used"](id=identity))
            return found

        row = await call(self._pool, "read a text from Git", read)
        return None if row is None else GitText(row["content"], row["digest"])

    async def keep(self, url: str, commit: str, path: str, text: GitText) -> None:
        """Stores a text, and deletes those that were not used for longest.

        Args:
            url: of the repository.
            commit: full id.
            path: from the root.
            text: the text.
        """
        values = {
            "id": _identity(url, commit, path),
            "url": url,
            "commit_id": commit,
            "path": path,
            "content": text.content.replace("\x00", ""),
            "digest": text.digest,
        }

        async def write(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute(*self._sql["keep_git_text"](**values))
                await connection.execute(*self._sql["trim_git_texts"](kept=self._kept))

        await call(self._pool, "store a text from Git", write)


def _identity(url: str, commit: str, path: str) -> str:
    return hashlib.sha256("\n".join((url, commit, path)).encode()).hexdigest()
