"""What can go wrong in the store: away (try again), out of date, no longer a worker, or simply refused."""


class StoreError(Exception):
    """A statement was refused; the message says what was done, where, and what Postgres answered."""


class StoreUnavailable(StoreError):
    """Postgres is away, failing over or overloaded: nothing is wrong with what was asked, ask again later."""


class SchemaMismatch(StoreError):
    """The database's schema is not one that this version can work with."""


class OlderWorkers(StoreUnavailable):
    """The schema cannot be brought up to date while workers run that the new one has nothing for."""


class WorkerLost(Exception):
    """This worker's registration expired or is gone: its runs are, or will be, another's; stop them, register anew."""
