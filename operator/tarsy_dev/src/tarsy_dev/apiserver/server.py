"""Runs etcd and kube-apiserver as child processes: a real Kubernetes API for development and tests.

It is the API and nothing behind it. There is no controller-manager, scheduler or kubelet: the namespaces `default`,
`kube-system`, `kube-public` exist, but nothing makes `default` ServiceAccounts, empties a deleted namespace (it stays
`Terminating`), collects what an ownerReference leaves behind, fills the aggregated ClusterRoles (`view`, `edit` and
`admin` are empty; `system:aggregate-to-view` and its like hold the rules), or runs a pod.

The methods block (seconds); asyncio code calls them through `asyncio.to_thread`, which is safe although the kernel ties
a child's life to the thread that forked it: see `process.Spawner`.
"""

from __future__ import annotations

import hashlib
import http.client
import ssl
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from embedded_kubeapi.pki import KeyPair, Pki, kubeconfig_document, write_private
from tarsy_dev.apiserver.binaries import Binaries, program_version, require_binaries
from tarsy_dev.apiserver.certificates import create_pki
from tarsy_dev.apiserver.errors import LocalKubernetesError, ServerStartError
from tarsy_dev.apiserver.etcd import compact
from tarsy_dev.apiserver.flags import apiserver_command, etcd_command
from tarsy_dev.apiserver.process import Spawner, end, free_port
from tarsy_dev.apiserver.progress import tail
from tarsy_dev.apiserver.state import StateFolder

_PORT_RACES = 5
_POLL_SECONDS = 0.05
_REQUEST_SECONDS = 5.0
# kube-apiserver keeps nothing itself and waits a minute for open watches; etcd writes what it has.
_APISERVER_GRACE_SECONDS = 2.0
_ETCD_GRACE_SECONDS = 5.0
_PORT_TAKEN = "address already in use"
_CEL_SINCE = (1, 25)


class ApiServer:
    """A control plane in a folder; call `start` and `stop` once each, or use it as a context manager.

    Args:
        state_dir: where etcd's data, keys, logs and kubeconfigs go; None for a temporary folder that `stop` removes.
            Data in it is served again; certificates, keys, tokens and the port are new at each start.
        binaries: what to run; None finds them (`find_binaries`).
        start_timeout: seconds that etcd and kube-apiserver together may take until they are ready.
    """

    def __init__(
        self, state_dir: Path | None = None, binaries: Binaries | None = None, start_timeout: float = 90.0
    ) -> None:
        self._given_dir = state_dir
        self._binaries = binaries
        self._start_timeout = start_timeout
        self._running: _Running | None = None

    def start(self) -> None:
        """Start both and wait until the API is ready.

        Raises:
            BinariesNotFound: there is no kube-apiserver or etcd.
            ServerStartError: one of them ended or was not ready in time, or the folder is in use; nothing is left.
        """
        if self._running is not None:
            raise LocalKubernetesError("this API server has been started already")
        binaries = self._binaries or require_binaries()
        deadline = time.monotonic() + self._start_timeout
        self._running = _Running(self._given_dir, binaries)
        try:
            self._running.start_etcd(deadline)
            self._running.start_apiserver(deadline)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End both, kube-apiserver first, and remove a temporary folder; does nothing when not started."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def stop_apiserver(self) -> None:
        """End kube-apiserver only: an outage. etcd and its data, the port and all certificates stay."""
        self._started.stop_apiserver()

    def start_apiserver(self) -> None:
        """Bring kube-apiserver back on the same port after `stop_apiserver`, and wait until it is ready.

        Raises:
            ServerStartError: it ended or was not ready in time.
        """
        self._started.start_apiserver(time.monotonic() + self._start_timeout)

    def kill(self) -> None:
        """SIGKILL to etcd and kube-apiserver, as when a node loses its power; `recover` brings them back."""
        self._started.kill()

    def recover(self) -> None:
        """Bring back what `kill` ended, with the data that was there, and wait until it is ready.

        Raises:
            ServerStartError: one of them ended or was not ready in time.
        """
        deadline = time.monotonic() + self._start_timeout
        self._started.start_etcd(deadline)
        self._started.start_apiserver(deadline)

    def compact(self) -> None:
        """Make etcd forget all but the newest revision: what watches from an older one gets 410.

        kube-apiserver goes on serving the last changes out of its own memory, until it is started anew.

        Raises:
            LocalKubernetesError: etcd did not do it.
        """
        self._started.compact()

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Writes a kubeconfig (mode 0600) with a client certificate for `user` in `groups`; returns its path."""
        running = self._started
        name = hashlib.sha256("\0".join((user, *groups)).encode()).hexdigest()[:16]
        path = running.folder / f"{name}.kubeconfig"
        running.write_kubeconfig(path, user, running.pki.cluster.issue(user, groups))
        return path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig (mode 0600, group system:masters)."""
        return self._started.kubeconfig

    @property
    def url(self) -> str:
        """Such as https://127.0.0.1:23456."""
        return self._started.url

    @property
    def ca_file(self) -> Path:
        """The authority that signed the API server's certificate, PEM."""
        return self._started.pki.path("ca.crt")

    @property
    def binaries(self) -> Binaries:
        """The programs in use, kubectl among them if there is one."""
        return self._started.binaries

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version of kube-apiserver."""
        return self._started.version

    @property
    def supports_cel(self) -> bool:
        """Whether CEL rules of a CRD are evaluated (1.25 and newer); older servers ignore them."""
        return self.version >= _CEL_SINCE

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are running now."""
        return self._started.pids

    @property
    def _started(self) -> _Running:
        if self._running is None:
            raise LocalKubernetesError("this API server is not running: call start() first")
        return self._running

    def __enter__(self) -> ApiServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Running:
    """Holds the state between `start` and `stop`."""

    def __init__(self, state_dir: Path | None, binaries: Binaries) -> None:
        self.binaries = binaries
        major, minor, _ = program_version(binaries.kube_apiserver)
        self.version = (major, minor)
        try:
            self._state = StateFolder(state_dir)
        except BlockingIOError:
            raise ServerStartError(
                f"another API server is running in {state_dir}: stop it or use another folder"
            ) from None
        self.folder = self._state.path
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self._spawner = Spawner()
        self._etcd: subprocess.Popen[bytes] | None = None
        self._apiserver: subprocess.Popen[bytes] | None = None
        self._etcd_port = self._port = 0
        try:
            self.pki: Pki = create_pki(self.folder / "pki")
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(child.pid for child in (self._apiserver, self._etcd) if child and child.poll() is None)

    def start_etcd(self, deadline: float) -> None:
        no_fsync = _knows_flag(self.binaries.etcd, "--unsafe-no-fsync")
        tls = self._tls("etcd-ca", "etcd-client")

        def attempt(log: Path) -> None:
            self._etcd_port = free_port()
            data = self.folder / "etcd"
            command = etcd_command(self.binaries, self.pki, data, self._etcd_port, no_fsync)
            self._etcd = self._spawner.spawn(command, log)
            _wait_ready(self._etcd, log, "etcd", deadline, lambda: _answers(self._etcd_port, "/health", tls))

        _despite_port_races(attempt, self.folder / "etcd.log")

    def start_apiserver(self, deadline: float) -> None:
        """On the port of the first start, once there was one; clients hold on to it."""
        if self._apiserver is not None:
            raise LocalKubernetesError("kube-apiserver is running already: call stop_apiserver() first")
        tls, first = self._tls("ca", "admin"), self._port == 0
        log = self.folder / "kube-apiserver.log"

        def ready() -> bool:
            # The namespaces come shortly after /readyz, made by a loop of the server's own.
            paths = ("/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system")
            return all(_answers(self._port, path, tls) for path in paths)

        def attempt(log: Path) -> None:
            if first:
                self._port = free_port()
            command = apiserver_command(self.binaries, self.pki, self._port, self._etcd_port)
            child = self._spawner.spawn(command, log)
            self._apiserver = child
            try:
                _wait_ready(child, log, "kube-apiserver", deadline, ready)
            except BaseException:
                self.stop_apiserver()
                raise

        if first:
            _despite_port_races(attempt, log)
            admin = KeyPair(*(self.pki.path(f"admin.{part}").read_bytes() for part in ("crt", "key")))
            self.write_kubeconfig(self.kubeconfig, "kubernetes-admin", admin)
        else:
            attempt(log)

    def stop_apiserver(self) -> None:
        child, self._apiserver = self._apiserver, None
        if child is not None:
            end(child, _APISERVER_GRACE_SECONDS)

    def kill(self) -> None:
        for child in (self._etcd, self._apiserver):
            if child is not None:
                child.kill()
                child.wait()
        self._etcd = self._apiserver = None

    def compact(self) -> None:
        compact(self._etcd_port, self._tls("etcd-ca", "etcd-client"))

    def close(self) -> None:
        try:
            self.stop_apiserver()
            if self._etcd is not None:
                end(self._etcd, _ETCD_GRACE_SECONDS)
        finally:
            self._spawner.close()  # with its thread, whatever is still alive
            self._state.close()

    def write_kubeconfig(self, path: Path, user: str, pair: KeyPair) -> None:
        """Writes a kubeconfig (mode 0600) to `path` with the certificate and key `pair` of `user`."""
        write_private(path, kubeconfig_document(self.url, self.pki.path("ca.crt").read_bytes(), user, pair))

    def _tls(self, authority: str, login: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.pki.path(f"{authority}.crt")))
        context.load_cert_chain(self.pki.path(f"{login}.crt"), self.pki.path(f"{login}.key"))
        return context


class _PortTaken(ServerStartError):
    pass


def _despite_port_races(attempt: Callable[[Path], None], log: Path) -> None:
    """A port that was free may be another's a moment later: try with the next one."""
    for left in reversed(range(_PORT_RACES)):
        log.unlink(missing_ok=True)
        try:
            return attempt(log)
        except _PortTaken:
            if not left:
                raise


def _wait_ready(
    child: subprocess.Popen[bytes], log: Path, name: str, deadline: float, ready: Callable[[], bool]
) -> None:
    while not ready():
        if (code := child.poll()) is not None:
            end_of_log = tail(log)
            kind = _PortTaken if _PORT_TAKEN in end_of_log else ServerStartError
            raise kind(f"{name} ended with {code} before it was ready; the end of its log:\n{end_of_log}")
        if time.monotonic() > deadline:
            raise ServerStartError(f"{name} was not ready in time; the end of its log:\n{tail(log)}")
        time.sleep(_POLL_SECONDS)  # there is no event to wait for


def _answers(port: int, path: str, tls: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS, context=tls)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _knows_flag(program: Path, flag: str) -> bool:
    try:
        result = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerStartError(f"{program} --help does not run on this machine: {error}") from error
    return flag in result.stdout + result.stderr
