"""Judges the address of Postgres before it is connected to: is the connection encrypted, and who says so.

Decision: left alone, asyncpg takes plain text from a server that offers no TLS, so whoever stands between reads the
record and the password. Beyond this machine the address therefore states `sslmode`. `allow` and `prefer` promise
nothing and are refused; `disable` is taken, because somebody wrote it down, and a warning repeats it.
"""

import ipaddress
import logging
import os
from urllib.parse import parse_qs, unquote, urlsplit

from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

_ENCRYPTED = ("require", "verify-ca", "verify-full")
_PLAIN = "disable"


def check_address(dsn: str) -> None:
    """Refuses an address that might be plain text beyond this machine without anybody having said so.

    Args:
        dsn: `postgresql://` address; a malformed one is left to asyncpg, which refuses it.

    Raises:
        StoreError: `sslmode` is missing, or leaves open whether the connection is encrypted.
    """
    try:
        found = _hosts(dsn)
        query = parse_qs(urlsplit(dsn).query)
    except ValueError:
        return
    if not (beyond := [host for host in found if not _is_here(host)]):
        return
    mode = query.get("sslmode", [os.environ.get("PGSSLMODE", "")])[-1].replace("_", "-")
    where = ", ".join(beyond)
    if mode == _PLAIN:
        _log.warning("the connection to Postgres at %s is not encrypted: its address says sslmode=disable", where)
    elif mode not in _ENCRYPTED:
        said = f"says sslmode={mode}, which takes plain text where no TLS is offered" if mode else "says no sslmode"
        raise StoreError(
            f"The address of Postgres at {where} {said}. Add ?sslmode=verify-full&sslrootcert=FILE with the authority "
            "of its certificate to the address (--database-url and --listen-url, or url in the Secret); "
            "sslmode=require encrypts without verifying, sslmode=disable accepts plain text."
        )


def _hosts(dsn: str) -> list[str]:
    """The hosts of an address, as asyncpg finds them: in it, in its query, in a service file or in the environment."""
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    authority = parts.netloc.partition("@")[2] if "@" in parts.netloc else parts.netloc
    listed = authority or query.get("host", [""])[-1]
    if not listed and "service" in query:
        return [f"service {query['service'][-1]}"]
    listed = listed or os.environ.get("PGHOST", "")
    return [_without_port(entry) for entry in listed.split(",") if entry]


def _without_port(entry: str) -> str:
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry if entry.startswith("/") else unquote(entry.partition(":")[0])


def _is_here(host: str) -> bool:
    """Whether a host is this machine: a directory of sockets, localhost, or a loopback address."""
    if not host or host.startswith(("/", "@")) or host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
