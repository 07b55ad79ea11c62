"""Tests an aggregated API server behind the local API, without a pod network."""

import base64
import http.server
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apis import LocalApi
from embedded_kubeapi.pki import Authority

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


def test_aggregated_api_is_served_with_the_identity_of_the_caller(
    kube_api: LocalApi, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    # The aggregator asks for the certificate of SERVICE.NAMESPACE.svc, whatever the ExternalName.
    host = f"extension.{namespace}.svc"
    with aggregated_api(tmp_path, kube_api.ca_file.parent / "front-proxy-ca.crt", host) as (port, ca, callers):
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "extension", "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        }
        extension = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.aggregated.tarsy.dev"},
            "spec": {
                "group": "aggregated.tarsy.dev",
                "version": "v1",
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "service": {"name": "extension", "namespace": namespace, "port": port},
                "caBundle": ca,
            },
        }
        for thing in (service, extension):
            applied = kubectl("apply", "-f", "-", stdin=thing)
            assert applied.returncode == 0, applied.stderr
        try:
            deadline = time.monotonic() + 120
            while kubectl("get", "--raw", "/apis/aggregated.tarsy.dev/v1").returncode != 0:
                assert time.monotonic() < deadline, "the aggregated API was not served in time"
                time.sleep(0.1)
            assert "kubernetes-admin" in callers
        finally:
            kubectl("delete", "apiservice", "v1.aggregated.tarsy.dev")


@contextmanager
def aggregated_api(folder: Path, front_proxy_ca: Path, host: str) -> Iterator[tuple[int, str, list[str]]]:
    """A server of one API group that takes callers' names from the front proxy only; its port, CA and callers seen."""
    callers: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            callers.append(self.headers.get("X-Remote-User", ""))
            body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "aggregated.tarsy.dev/v1"}
            answer = json.dumps({**body, "resources": []}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    authority = Authority("aggregated")
    pair = authority.issue("extension", names=[host])
    (folder / "server.crt").write_bytes(pair.certificate)
    (folder / "server.key").write_bytes(pair.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(front_proxy_ca))
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1], base64.b64encode(authority.certificate).decode(), callers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
