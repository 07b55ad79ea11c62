"""Why a tool server cannot be reached or run, in words that people can act on.

Decision: a sentence says what was tried, where, what came of it and what to look at, and it is the same at each look
at the same fault, because it stands in a status that is written when it differs. A URL is shown without its query and
user, which may hold a secret. No word of a server behind a URL is in it: its owner may not be who reads it (DESIGN
section 7).
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
    """A URL without user, query and fragment."""
    try:
        parsed = httpx2.URL(url)
        host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
        port = f":{parsed.port}" if parsed.port else ""
        return f"{parsed.scheme}://{host}{port}{parsed.path}"
    except (httpx2.InvalidURL, ValueError):
        return "its URL"


def refusal_reason(status: int, url: str = "", *, sse: bool = False) -> str:
    """What a refusing HTTP status says, from where, with what to look at.

    Args:
        status: the status code.
        url: that was asked.
        sse: whether a stream of events was asked for.
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
    """The sentence about an answer that is not MCP; other types than well-known ones are not repeated."""
    kind = content_type.partition(";")[0].strip().lower()
    what = kind if kind in _KNOWN_TYPES else "something else"
    return f"{place(url)} responds with {what} instead of MCP (check the path of the URL, often /mcp)"


def not_mcp(url: str) -> str:
    """The sentence about JSON that is no JSON-RPC message."""
    return f"{place(url)} responds with JSON that is not an MCP message (check the path of the URL, often /mcp)"


def unconnected(error: BaseException, url: str) -> str:
    """Why there is no connection to a server; what judged its address says so itself.

    Args:
        error: of the HTTP client.
        url: that was asked.
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
    """Why a command cannot be started that was not found to be executable."""
    if "/" not in command:
        return f"its command {command!r} was not found on PATH; install it, or specify its path"
    there = Path(command)
    if there.is_dir():
        return f"its command {command!r} is a directory; specify the program in it"
    if there.exists():
        return f"its command {command!r} is not executable; run `chmod +x {command}`"
    return f"its command {command!r} does not exist; check the path, and that it is on the operator's machine"


def not_started(command: str, error: OSError) -> str:
    """Why the system did not start a command that is there."""
    if error.errno == errno.ENOEXEC:
        return f"its command {command!r} is not a program for this machine; a script must begin with #!"
    if error.errno == errno.ENOENT:
        return f"its command {command!r} needs an interpreter that does not exist; check its first line (#!)"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"the operator may not run its command {command!r}; check its permissions and those of its interpreter"
    return f"its command {command!r} could not be started: {os.strerror(error.errno or 0).lower()}"


def ended(code: int) -> str:
    """How a command ended, from what the system says of it."""
    if code >= 0:
        return f"its command exited with code {code} before it responded"
    names = {number.value: number.name for number in signal.Signals}
    return f"its command was terminated by signal {names.get(-code, -code)} before it responded"


def without_addresses(text: str) -> str:
    """The text without addresses of objects in memory, which tell nobody anything."""
    return _ADDRESS.sub(lambda match: match[1], text)


def alike(one: str, other: str) -> bool:
    """Whether two sentences differ by times, process ids, addresses and their like alone."""
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
