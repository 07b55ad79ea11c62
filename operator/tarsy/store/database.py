"""Opens the connection pool, and distinguishes transient from permanent errors.

A step of a run must survive a restart of Postgres, so `call` retries until the time of its caller is up; every
statement of the store may be sent twice. Returned connections are not reset by a query, which would cost a round trip a
step: no session state is ever set on them, and asyncpg rolls back what a cancelled task left open.
"""

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import asyncpg
import orjson

from tarsy.store.address import check_address
from tarsy.store.errors import StoreError, StoreUnavailable
from tarsy.store.pressure import Pressure
from tarsy.store.text import dump_json

_T = TypeVar("_T")

SCHEMA = "tarsy"
_CONNECT_SECONDS = 10.0
_COMMAND_SECONDS = 60.0
_STATEMENT_MILLISECONDS = 30_000
_IDLE_IN_TRANSACTION_MILLISECONDS = 10_000
_IDLE_SECONDS = 300.0
_QUERIES_A_CONNECTION = 50_000
_FIRST_DELAY = 0.05
_LONGEST_DELAY = 2.0

_PASSING = (
    asyncpg.PostgresConnectionError,  # class 08
    asyncpg.TransactionRollbackError,  # class 40: serialization, deadlock
    asyncpg.InsufficientResourcesError,  # class 53: too many connections, disk full
    asyncpg.OperatorInterventionError,  # class 57: shutdown, starting up, statement timeout
    asyncpg.ReadOnlySQLTransactionError,  # a standby, or a primary that was demoted
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


class _Introspection:
    """The statement that looked types up; asyncpg only asks whether it had a name, and so left others prepared."""

    name = "known"


_KNOWN_TYPES: dict[frozenset[int], Any] = {}
_FIRST_OWN_TYPE = 16_384  # below are the types of Postgres itself, which are the same in every database


class Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    """A connection that looks each set of Postgres' own types up once a process.

    asyncpg does so once a connection, with a query that costs Postgres more than all that a short connection does.
    """

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> tuple[Any, Any]:
        wanted = frozenset(typeoids)
        if wanted in _KNOWN_TYPES:
            return _KNOWN_TYPES[wanted], _Introspection
        found: tuple[Any, Any] = await super()._introspect_types(typeoids, timeout)
        if max(wanted, default=0) < _FIRST_OWN_TYPE:
            _KNOWN_TYPES[wanted] = found[0]
        return found


class Pool(asyncpg.Pool):  # type: ignore[misc]  # asyncpg has no types
    """A pool that measures whether its users wait."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pressure = Pressure()

    @property
    def exhausted(self) -> bool:
        """Whether all connections are in use and no more may be opened."""
        return not self.get_idle_size() and self.get_size() >= self.get_max_size()

    async def release(self, connection: asyncpg.pool.PoolConnectionProxy, *, timeout: float | None = None) -> None:
        """Returns a connection; one that is at rest without a task of its own.

        asyncpg returns every connection in a task, which goes on when the caller is cancelled. There is nothing to wait
        for, and so nothing to cancel, where no statement is being cancelled and the connection stays open.
        """
        if self._at_rest(connection):
            connection._con._on_release()
            await connection._holder.release(None)
        else:
            await super().release(connection, timeout=timeout)

    def _at_rest(self, connection: asyncpg.pool.PoolConnectionProxy) -> bool:
        """Checks whether a connection can be used again as it is."""
        held, holder = connection._con, connection._holder
        return (
            held is not None
            and holder._pool is self
            and holder._generation == self._generation
            and not held.is_closed()
            and not held.is_in_transaction()
            and not held._protocol._is_cancelling()
            and held._protocol.queries_count < _QUERIES_A_CONNECTION
        )


async def open_pool(dsn: str, *, min_size: int = 1, max_size: int = 10, application: str = "tarsy") -> Pool:
    """Opens a pool whose connections use the schema `tarsy` and return jsonb as Python values.

    Args:
        dsn: `postgresql://` address; its password never appears in an error.
        min_size: connections opened at once.
        max_size: maximum connections.
        application: application_name in `pg_stat_activity`.

    Raises:
        StoreUnavailable: no server answers at the address, or not yet.
        StoreError: the address is malformed or leaves open whether the connection is encrypted, or the server refuses
            the user, the password or the database.
    """
    where = describe_address(dsn)
    check_address(dsn)
    try:
        pool = Pool(
            dsn,
            min_size=min_size,
            max_size=max_size,
            max_queries=_QUERIES_A_CONNECTION,
            max_inactive_connection_lifetime=_IDLE_SECONDS,
            loop=None,
            connection_class=Connection,
            record_class=asyncpg.Record,
            timeout=_CONNECT_SECONDS,
            command_timeout=_COMMAND_SECONDS,
            init=_init,
            reset=_no_reset,
            server_settings={
                "application_name": application,
                "search_path": SCHEMA,
                "statement_timeout": str(_STATEMENT_MILLISECONDS),
                "idle_in_transaction_session_timeout": str(_IDLE_IN_TRANSACTION_MILLISECONDS),
            },
        )
        await pool
        return pool
    except (ValueError, *_PASSING) as error:
        if _is_about_certificates(error, dsn):
            raise StoreError(
                f"The certificate of Postgres at {where} cannot be verified ({reason(error)}). Check the file that "
                "sslrootcert names, and that the certificate is of that authority and names the host of the address."
            ) from None
        if isinstance(error, ValueError):
            raise StoreError(
                "The database address is malformed. Give it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
            ) from None
        raise StoreUnavailable(
            f"Postgres at {where} does not answer ({reason(error)}). Check that it runs and that the address is right."
        ) from error
    except asyncpg.PostgresError as error:
        raise StoreError(
            f"Postgres at {where} refuses the connection ({reason(error)}). Check user, password and database."
        ) from error


def _is_about_certificates(error: BaseException, dsn: str) -> bool:
    """Returns whether a connection failed because of a certificate, or because of a missing certificate file."""
    if isinstance(error, FileNotFoundError):
        return "sslrootcert" in dsn
    return isinstance(error, ssl.SSLCertVerificationError) or "certificate" in str(error)


def describe_address(dsn: str) -> str:
    """Returns host, port and database of an address, without user and password."""
    try:
        parts = urlsplit(dsn)
        host = f"{parts.hostname or 'localhost'}:{parts.port or 5432}"
    except ValueError:
        return "the given address"
    return f"{host}/{unquote(parts.path.lstrip('/'))}"


def reason(error: BaseException) -> str:
    """Returns the message of an error in one line, or its class when it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


def passing(error: BaseException) -> bool:
    """Returns whether an error is transient: the same statement may succeed later."""
    if isinstance(error, asyncpg.InterfaceError):  # "connection is closed", and only that, is not the caller's fault
        return "connection" in str(error) and not isinstance(error, asyncpg.exceptions.DataError)
    return isinstance(error, _PASSING)


async def call(
    pool: asyncpg.Pool,
    what: str,
    action: Callable[[asyncpg.pool.PoolConnectionProxy], Awaitable[_T]],
    *,
    remaining: Callable[[], float] | None = None,
) -> _T:
    """Runs `action` on a connection, and retries after transient errors.

    Args:
        pool: from `open_pool`.
        what: the action in words, for the error ("write the result of tool call ...").
        action: takes the connection; may run more than once.
        remaining: returns the seconds left, called before each try; None: one try.

    Raises:
        StoreUnavailable: the error is transient, and the time is up.
        StoreError: Postgres refused.
    """
    delay = _FIRST_DELAY
    pressure = pool.pressure if isinstance(pool, Pool) else None
    while True:
        try:
            async with asyncio.timeout(None if remaining is None else max(0.0, remaining())):
                asked = time.monotonic()
                connection = await _acquire(pool)
                began = time.monotonic()
                try:
                    return await action(connection)
                finally:
                    if pressure is not None:
                        pressure.took(what, time.monotonic() - began)
                        pressure.waited(what, began - asked, pool.get_size())
                    await pool.release(connection, timeout=_CONNECT_SECONDS)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            if not passing(error) or pool.is_closing():
                raise StoreError(f"Cannot {what}: {reason(error)}") from error
            if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                await pool.expire_connections()  # a new connection may find the new primary
            pause = delay * random.uniform(0.5, 1.0)
            if remaining is None or remaining() <= pause:
                if isinstance(error, TimeoutError) and isinstance(pool, Pool) and pool.exhausted:
                    why = f"all {pool.get_size()} connections to Postgres are in use"
                else:
                    why = f"Postgres is unavailable or too slow ({reason(error)})"
                raise StoreUnavailable(f"Cannot {what}: {why}.") from error
        await asyncio.sleep(pause)
        delay = min(delay * 2, _LONGEST_DELAY)


async def fetch_rows(pool: asyncpg.Pool, what: str, statement: tuple[Any, ...]) -> list[asyncpg.Record]:
    """Returns the rows of one statement.

    Args:
        pool: from `open_pool`.
        what: the action in words, for the error.
        statement: the SQL and its parameters, from `Query`.

    Raises:
        StoreError: Postgres refused, or is unavailable.
    """

    async def fetch(connection: asyncpg.pool.PoolConnectionProxy) -> list[asyncpg.Record]:
        return list(await connection.fetch(*statement))

    return await call(pool, what, fetch)


async def _acquire(pool: asyncpg.Pool) -> asyncpg.pool.PoolConnectionProxy:
    """Acquires a connection within a timeout; the timeout of the pool itself would cost a task a statement."""
    async with asyncio.timeout(_CONNECT_SECONDS):
        return await pool.acquire()


async def _init(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", format="binary", encoder=_encode_jsonb, decoder=_decode_jsonb
    )


async def _no_reset(connection: asyncpg.Connection) -> None:
    """Resets nothing; the module docstring has the reason."""


def _encode_jsonb(value: Any) -> bytes:
    return b"\x01" + dump_json(value)  # the wire format's version


def _decode_jsonb(data: bytes) -> Any:
    return orjson.loads(data[1:])
