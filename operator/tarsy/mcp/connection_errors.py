"""Explains why a tool server cannot be reached or run, with a remedy.

Decision: a sentence names the attempt, the address, the error and the remedy. It is the same at each check of the same
fault, because a status is written only when it changes. A URL is shown without query and user, which may contain a
secret. The sentence repeats nothing that a server behind a URL sent: whoever may read a status could otherwise read
what stands behind addresses that only this process can reach.
"""

import errno
import os
import re
import signal
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import httpx2

from tarsy.outbound.address_check import NotAllowed

_HINTS = {
    400: "the server rejects the request: check the URL and the transport type",
    401: "check the headers and Secrets of this server",
    403: "check the headers and Secrets of this server",
    404: "check the path of the URL, often /mcp",
    405: "it does not accept POST: check the path of the URL, often /mcp, and whether the transport type is sse",
    406: "check the path of the URL and the transport type",
    407: "the URL leads to a proxy: use the URL of the server itself",
    429: "the server is at its rate limit",
}
_SSE_HINTS = {
    405: "it does not accept GET: check the path of the URL, often /sse, and whether the transport type is http"
}
_KNOWN_TYPES = ("text/html", "text/plain", "application/xml", "application/xhtml+xml")
_VOLATILE = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|tarsy-home-\w+"
    r"|\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|(?<=pid )\d+|(?<=\[)\d+(?=\])|\d{4,}(?:\.\d+)?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"<([\w.]+)(?: object)? at 0x[0-9a-fA-F]+>")


def place(url: str) -> str:
    """Returns a URL without user, query and fragment."""
    try:
        parsed = httpx2.URL(url)
        host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
        port = f":{parsed.port}" if parsed.port else ""
        return f"{parsed.scheme}://{host}{port}{parsed.path}"
    except (httpx2.InvalidURL, ValueError):
        return "its URL"


def refusal_reason(status: int, url: str = "", *, sse: bool = False) -> str:
    """Describes an HTTP error status, with its origin and a remedy.

    Args:
        status: the status code.
        url: the requested URL; empty: unknown.
        sse: whether the request opened an event stream.
    """
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    text = f"HTTP {status} {phrase}".strip() + (f" from {place(url)}" if url else "")
    if 300 <= status < 400:
        hint = "redirects are not followed: put the final address into spec.transport.http.url"
    elif status >= 500:
        hint = "see the server's own log"
    else:
        hint = (_SSE_HINTS.get(status) if sse else None) or _HINTS.get(status, "")
    return f"{text} ({hint})" if hint else text


def no_answer(content_type: str, url: str) -> str:
    """Describes a response that is not MCP; only well-known content types are repeated.

    Args:
        content_type: the content type of the response.
        url: the requested URL.
    """
    kind = content_type.partition(";")[0].strip().lower()
    what = kind if kind in _KNOWN_TYPES else "something else"
    return f"{place(url)} responds with {what} instead of MCP (check the path of the URL, often /mcp)"


def not_mcp(url: str) -> str:
    """Describes a JSON response that is not a JSON-RPC message."""
    return f"{place(url)} responds with JSON that is not an MCP message (check the path of the URL, often /mcp)"


def unconnected(error: BaseException, url: str) -> str:
    """Describes a failed connection; a refused address explains itself.

    Args:
        error: the error of the HTTP client.
        url: the requested URL.
    """
    found = list(_causes(error))
    where = place(url)
    for cause in found:
        if isinstance(cause, NotAllowed):
            return str(cause)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate of {where} is not trusted (spec.transport.http.tls.caFrom can name another CA)"
        if isinstance(cause, ssl.SSLError):
            return f"no TLS with {where} (is it an http:// server, or the port of another service?)"
        if isinstance(cause, socket.gaierror):
            return f"no connection to {where}: {cause.strerror} (check the name, and the namespace in it)"
        if isinstance(cause, ConnectionRefusedError) or getattr(cause, "errno", None) == errno.ECONNREFUSED:
            return f"no connection to {where}: connection refused (is the server running on this port?)"
    if any(isinstance(cause, TimeoutError | httpx2.TimeoutException) for cause in found):
        return f"no connection to {where} in time (check address, port and NetworkPolicies)"
    numbers = [cause.errno for cause in found if isinstance(cause, OSError) and cause.errno]
    if numbers:
        return f"no connection to {where}: {os.strerror(numbers[-1]).lower()}"
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return f"no connection to {where}: {str(error) or type(error).__name__}"
    return f"the connection to {where} broke: {type(error).__name__}"  # the text may quote what the server sent


def not_runnable(command: str) -> str:
    """Describes why a command is not executable."""
    if "/" not in command:
        return f"its command {command!r} was not found on PATH; install it, or specify its path"
    there = Path(command)
    if there.is_dir():
        return f"its command {command!r} is a directory; specify the program in it"
    if there.exists():
        return f"its command {command!r} is not executable; run `chmod +x {command}`"
    return f"its command {command!r} does not exist; check the path, and that it is on the operator's machine"


def not_started(command: str, error: OSError) -> str:
    """Describes why the system did not start an existing command."""
    if error.errno == errno.ENOEXEC:
        return f"its command {command!r} is not a program for this machine; a script must begin with #!"
    if error.errno == errno.ENOENT:
        return f"its command {command!r} needs an interpreter that does not exist; check its first line (#!)"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"the operator may not run its command {command!r}; check its permissions and those of its interpreter"
    return f"its command {command!r} could not be started: {os.strerror(error.errno or 0).lower()}"


def ended(code: int) -> str:
    """Describes how a command exited; a negative code is a signal."""
    return f"its command {exit_of(code)} before it responded"


def exit_of(code: int) -> str:
    """Returns the predicate of a sentence about a process that ended; a negative code is a signal."""
    if code >= 0:
        return f"exited with code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was terminated by signal {names.get(-code, -code)}"


def without_addresses(text: str) -> str:
    """Removes memory addresses of objects from a text."""
    return _ADDRESS.sub(lambda match: match[1], text)


def alike(one: str, other: str) -> bool:
    """Returns whether two sentences differ only in times, process ids, addresses and the like."""
    return one == other or _VOLATILE.sub("#", one) == _VOLATILE.sub("#", other)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [error] if error is not None else []
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
