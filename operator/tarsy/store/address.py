"""Checks before connecting that the address of Postgres requires encryption or explicitly disables it.

Decision: by default asyncpg accepts plain text from a server that offers no TLS, so that an attacker on the network can
read the record and the password. The address of another machine must therefore contain `sslmode`. `allow` and `prefer`
guarantee nothing and are refused; `disable` is explicit, and is accepted with a warning.
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
    """Refuses an address of another machine that leaves open whether the connection is encrypted.

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
        _log.warning("the connection to Postgres at %s is not encrypted: its address contains sslmode=disable", where)
    elif mode not in _ENCRYPTED:
        flaw = f"contains sslmode={mode}, which accepts plain text without TLS" if mode else "contains no sslmode"
        raise StoreError(
            f"The address of Postgres at {where} {flaw}. Add ?sslmode=verify-full&sslrootcert=FILE with the authority "
            "of its certificate to the address (--database-url and --listen-url, or url in the Secret); "
            "sslmode=require encrypts without verifying, sslmode=disable accepts plain text."
        )


def _hosts(dsn: str) -> list[str]:
    """Returns the hosts as asyncpg finds them: in the address, in a service file or in the environment."""
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
    """Returns whether a host is this machine: a directory of sockets, localhost, or a loopback address."""
    if not host or host.startswith(("/", "@")) or host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
