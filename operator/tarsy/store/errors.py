"""Defines the errors of the store."""


class StoreError(Exception):
    """Postgres refused a statement; the message contains the action, the address and the answer of Postgres."""


class StoreUnavailable(StoreError):
    """Postgres is unavailable, failing over or overloaded: the same request may succeed later."""


class SchemaMismatch(StoreError):
    """This version cannot use the schema of the database."""


class OlderWorkers(StoreUnavailable):
    """The schema cannot be migrated while workers run whose version cannot use the new one."""


class WorkerLost(Exception):
    """The registration of this worker has expired: it must stop its runs and register again."""
