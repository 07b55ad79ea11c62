"""Provides an embedded API per process, kubectl for it, and a plain HTTP client."""

import base64
import json
import shutil
import ssl
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pytest
import yaml

from embedded_kubeapi.server import EmbeddedApi

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
WIDGETS = "/apis/demo.example.com/v1/namespaces/{namespace}/widgets"
WIDGET_SPEC = {
    "type": "object",
    "required": ["size"],
    "x-kubernetes-validations": [
        {"rule": "self.size >= oldSelf.size || self.size > 2", "messageExpression": "'too small: ' + string(self.size)"}
    ],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How large."},
        "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
            },
        },
    },
}
WIDGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.demo.example.com"},
    "spec": {
        "group": "demo.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": WIDGET_SPEC,
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: int = 3, **meta: Any) -> dict[str, Any]:
    """A Widget."""
    return {
        "apiVersion": "demo.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **meta},
        "spec": {"size": size},
    }


@pytest.fixture(scope="session")
def api() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as server:
        yield server


def client_tls(kubeconfig: Path) -> ssl.SSLContext:
    """TLS as a kubeconfig's user."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    pem = kubeconfig.with_suffix(f".{uuid.uuid4().hex}.pem")
    pem.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    context.load_cert_chain(pem)
    pem.unlink()
    return context


@pytest.fixture
async def http(api: EmbeddedApi) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=client_tls(api.kubeconfig))
    async with aiohttp.ClientSession(api.url, connector=connector, timeout=aiohttp.ClientTimeout(total=30)) as session:
        yield session


@pytest.fixture
def kubectl(api: EmbeddedApi) -> Kubectl:
    """Run kubectl as the administrator, or with another kubeconfig; `stdin` is an object to write as JSON."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl on PATH")

    def run(*arguments: str, stdin: object = None, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "--kubeconfig", kubeconfig or api.kubeconfig, *arguments],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=180,
        )

    return run


def create(api: EmbeddedApi, path: str, body: object) -> None:
    """Creates an object, without the half second of a kubectl."""
    request = Request(f"{api.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    urlopen(request, context=client_tls(api.kubeconfig), timeout=120).close()


@pytest.fixture(scope="session")
def widgets(api: EmbeddedApi) -> None:
    """The Widget kind is served."""
    create(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGET_CRD)


@pytest.fixture
def namespace(api: EmbeddedApi) -> str:
    name = f"test-{uuid.uuid4().hex[:10]}"
    create(api, "/api/v1/namespaces", {"metadata": {"name": name}})
    return name
