"""Provides Postgres on one machine: an existing server by URL, or a server as a child process.

The wheels that bring Postgres binaries also bring launchers; as root those create system users, open every directory up
to `/` to others and leave the server running when their process is killed. So only their binaries are used.
"""

from tarsy_dev.postgres.errors import PostgresError
from tarsy_dev.postgres.server import DATABASE_URL, LocalPostgres

__all__ = ["DATABASE_URL", "LocalPostgres", "PostgresError"]
