"""Tests the proxy by which the API extensions server reaches the Services of webhooks; loopback only."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tarsy_dev.apiserver.service_proxy import ServiceProxy


@pytest.fixture
def proxy() -> Iterator[ServiceProxy]:
    with ServiceProxy() as proxy:
        yield proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back one message."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(connection.recv(100).upper())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        yield listener.getsockname()[1]
        thread.join(10)


def _asked(proxy: ServiceProxy, target: str) -> socket.socket:
    host, _, port = proxy.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), 10)
    connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    return connection


def test_service_is_a_port_of_this_machine(proxy: ServiceProxy, echo: int) -> None:
    with _asked(proxy, f"hook.shop.svc:{echo}") as connection:
        assert connection.recv(100) == b"HTTP/1.1 200 OK\r\n\r\n"
        connection.sendall(b"admit me")
        assert connection.recv(100) == b"ADMIT ME"
        assert connection.recv(100) == b""


@pytest.mark.parametrize(("target", "status"), [("example.com:443", b"403"), ("hook.shop.svc:1", b"502")])
def test_what_is_no_service_of_this_machine_is_refused(proxy: ServiceProxy, target: str, status: bytes) -> None:
    with _asked(proxy, target) as connection:
        assert connection.recv(100).split()[1] == status
