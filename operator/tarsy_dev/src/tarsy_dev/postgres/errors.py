"""Defines the error of the Postgres runner; its text names the problem and the remedy."""


class PostgresError(Exception):
    """A local Postgres cannot be found, started or used."""
