"""Forwards connections to Services of a cluster to this machine, for a program that finds them by DNS.

The API extensions server calls the webhook of a Service at NAME.NAMESPACE.svc, and there is no cluster DNS here. As
HTTPS_PROXY it sends `CONNECT NAME.NAMESPACE.svc:PORT` instead, and gets a connection to that port of 127.0.0.1, where
all Services of a local cluster are.
"""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
from types import TracebackType

_CONNECT = re.compile(rb"CONNECT [a-z0-9.-]+\.svc:(\d{1,5}) ")
_CONNECT_SECONDS = 10.0
_CHUNK = 65_536


class ServiceProxy:
    """An HTTP proxy on 127.0.0.1 for CONNECT requests to Services; use it as a context manager."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Tunnel)
        self._thread = threading.Thread(target=self._server.serve_forever, name="tarsy-service-proxy", daemon=True)

    @property
    def url(self) -> str:
        """The value for HTTPS_PROXY."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ServiceProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


class _Tunnel(socketserver.StreamRequestHandler):
    rbufsize = 0  # what follows the head belongs to the tunnel

    def handle(self) -> None:
        asked = _CONNECT.match(self.rfile.readline(_CHUNK))
        while self.rfile.readline(_CHUNK).strip():
            pass
        if asked is None:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            return
        try:
            service = socket.create_connection(("127.0.0.1", int(asked[1])), _CONNECT_SECONDS)
        except (OSError, OverflowError):
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with service:
            service.settimeout(None)
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(service, self.connection), daemon=True)
            back.start()
            _copy(self.connection, service)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copies bytes until one side ends, and then ends the other."""
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
