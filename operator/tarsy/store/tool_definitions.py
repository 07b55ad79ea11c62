"""Stores the definitions of tools of MCPServers with `spec.pin`, for people who compare and accept them.

Decision: nothing is decided from these rows. What may be used is in the status of the object, as digests; this is the
text that belongs to a digest. A server is identified by its uid, so that one which is created again begins anew.
"""

from collections.abc import Mapping

import asyncpg

from tarsy.record.reading.tool_definition import KnownDefinition
from tarsy.store.database import call
from tarsy.store.queries import load

DEFINITIONS_KEPT = 512
"""Definitions of one server that are kept, those seen last."""

DEFINITION_CHARACTERS = 65_536
"""Characters of a definition that are kept."""


class ToolDefinitions:
    """Reads and writes definitions; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("tool_definitions")

    async def note(self, server_uid: str, listed: Mapping[str, tuple[str, str]]) -> None:
        """Stores what a server lists now, and deletes what was not seen for longest.

        Args:
            server_uid: of the MCPServer.
            listed: digest and masked definition by tool.
        """
        digests = {digest: (tool, text[:DEFINITION_CHARACTERS]) for tool, (digest, text) in listed.items()}
        values = {
            "server_uid": server_uid,
            "digests": list(digests),
            "tools": [tool for tool, _ in digests.values()],
            "definitions": [text.replace("\x00", "") for _, text in digests.values()],
        }

        async def write(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute(*self._sql["note"](**values))
                await connection.execute(*self._sql["trim_definitions"](server_uid=server_uid, kept=DEFINITIONS_KEPT))

        await call(self._pool, "store definitions of tools", write)

    async def of_server(self, server_uid: str) -> list[KnownDefinition]:
        """Returns the known definitions of a server, by tool and age."""

        async def run(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(*self._sql["of_server"](server_uid=server_uid)))

        return [KnownDefinition(**row) for row in await call(self._pool, "read definitions of tools", run)]

    async def forget(self, server_uid: str) -> None:
        """Deletes the definitions of a server."""

        async def run(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["forget_server"](server_uid=server_uid))

        await call(self._pool, "delete definitions of tools", run)
