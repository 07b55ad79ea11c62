"""The one error of this room: its text says what is wrong and what to do, so callers print it and stop."""


class PostgresError(Exception):
    """A local Postgres cannot be found, started or used."""
