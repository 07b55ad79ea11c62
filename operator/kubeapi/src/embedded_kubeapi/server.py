"""Runs the embedded API in a thread of its own: TLS, kubeconfigs, start and stop.

It runs on a loop of its own in a thread of its own, so blocking tests and asyncio code can use it alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from embedded_kubeapi.call import ADMINS
from embedded_kubeapi.cluster import Cluster
from embedded_kubeapi.http.app import MAJOR, MINOR
from embedded_kubeapi.pki import KeyPair, Pki, create_pki, kubeconfig_document, write_private

_T = TypeVar("_T")
_LOG_SIZE = 20_000
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_BODY_LIMIT = 3 * 1024 * 1024
ADMIN = "kubernetes-admin"


class EmbeddedApiError(Exception):
    """The operation is not possible in the current state; the message contains the reason."""


class EmbeddedApi:
    """A Kubernetes API server; call `start` and `stop` once each, or use it as a context manager.

    Args:
        state_dir: where certificates and kubeconfigs go; None for a temporary folder that `stop` removes.
        keep: a file in which the objects outlive the process; None to forget them.
        port: on 127.0.0.1; 0 for a free one.
        log_size: how many events a watch can go back before it gets 410.
    """

    def __init__(
        self, state_dir: Path | None = None, *, keep: Path | None = None, port: int = 0, log_size: int = _LOG_SIZE
    ) -> None:
        self._given_dir = state_dir
        self._keep = keep
        self._port = port
        self._log_size = log_size
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._folder: Path | None = None
        self._pki: Pki | None = None
        self._cluster: Cluster | None = None
        self._door: web.ServerRunner | None = None

    def start(self) -> None:
        """Starts the server, and returns when it answers requests.

        Raises:
            EmbeddedApiError: it has been started already.
            JournalInUse: another process has the file of `keep`.
            OSError: the port is taken.
        """
        if self._thread is not None:
            raise EmbeddedApiError("this API has been started already")
        self._folder = self._given_dir or Path(tempfile.mkdtemp(prefix="tarsy-api-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tarsy-embedded-api", daemon=True)
        self._thread.start()
        try:
            self._pki = create_pki(self._folder / "pki")
            self._do(self._open_all(self._pki), _START_SECONDS)
            self._write_kubeconfig(self.kubeconfig, ADMIN, self._pki.cluster.issue(ADMIN, [ADMINS]))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops the server and removes a temporary folder; does nothing if it was not started."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None:
            return
        with contextlib.suppress(TimeoutError):
            self._do(self._close_all(), _STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join(_STOP_SECONDS)
        self._loop.close()
        if self._given_dir is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def stop_apiserver(self) -> None:
        """Simulates an outage: stops answering. Objects, port and certificates stay."""
        self._do(self._close_door(), _STOP_SECONDS)

    def start_apiserver(self) -> None:
        """Ends the outage: answers again on the same port."""
        self._do(self._open_door(), _START_SECONDS)

    def compact(self) -> None:
        """Discards all events, as etcd's compaction does: watches that resume get 410."""
        self._do(self._compact(), _START_SECONDS)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Writes a kubeconfig (mode 0600) with a client certificate for `user` in `groups`; returns its path."""
        name = hashlib.sha256("\0".join((user, *groups)).encode()).hexdigest()[:16]
        path = self._home / f"{name}.kubeconfig"
        self._write_kubeconfig(path, user, self._certificates.cluster.issue(user, groups))
        return path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig (mode 0600, group system:masters)."""
        return self._home / "admin.kubeconfig"

    @property
    def url(self) -> str:
        """Such as https://127.0.0.1:23456."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_file(self) -> Path:
        """The CA certificate of the server, PEM."""
        return self._certificates.path("ca.crt")

    @property
    def version(self) -> tuple[int, int]:
        """The Kubernetes version (major, minor) whose behaviour this follows."""
        return MAJOR, MINOR

    @property
    def supports_cel(self) -> bool:
        """Whether CEL rules of a CRD are evaluated."""
        return True

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids; none, because the server runs in this process."""
        return ()

    @property
    def cluster(self) -> Cluster:
        """The objects behind the API; use them on its own event loop only."""
        if self._cluster is None:
            raise EmbeddedApiError("this API is not running: call start() first")
        return self._cluster

    @property
    def _home(self) -> Path:
        if self._folder is None:
            raise EmbeddedApiError("this API is not running: call start() first")
        return self._folder

    @property
    def _certificates(self) -> Pki:
        if self._pki is None:
            raise EmbeddedApiError("this API is not running: call start() first")
        return self._pki

    def __enter__(self) -> EmbeddedApi:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        loop = self._loop
        if loop is not None:
            asyncio.set_event_loop(loop)
            loop.run_forever()

    def _do(self, work: Coroutine[Any, Any, _T], seconds: float) -> _T:
        if self._loop is None:
            work.close()
            raise EmbeddedApiError("this API is not running: call start() first")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _open_all(self, pki: Pki) -> None:
        self._cluster = Cluster(pki, self._keep, self._log_size)
        await self._open_door()

    async def _open_door(self) -> None:
        if self._door is not None:
            raise EmbeddedApiError("this API is answering already: call stop_apiserver() first")
        pki = self._certificates
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki.path("ca.crt")))
        tls.verify_mode = ssl.CERT_OPTIONAL
        tls.load_cert_chain(pki.path("apiserver.crt"), pki.path("apiserver.key"))
        # A client that goes ends what is done for it: watches have no other way to know.
        server = web.Server(
            self.cluster.app,
            request_factory=_request,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
        )
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", self._port))
            await web.SockSite(runner, listener, ssl_context=tls, backlog=1024).start()
        except BaseException:
            listener.close()
            await runner.cleanup()
            raise
        self._port = listener.getsockname()[1]
        self._door = runner

    async def _close_door(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            await door.cleanup()

    async def _close_all(self) -> None:
        await self._close_door()
        if self._cluster is not None:
            await self._cluster.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _compact(self) -> None:
        self.cluster.store.compact()

    def _write_kubeconfig(self, path: Path, user: str, pair: KeyPair) -> None:
        write_private(path, kubeconfig_document(self.url, self.ca_file.read_bytes(), user, pair))


def _request(
    message: RawRequestMessage, payload: StreamReader, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_BODY_LIMIT)
