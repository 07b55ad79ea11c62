"""`MCPServer.spec.run`: at a limit an object is good, one beyond it is not."""

from typing import Any

import pytest

from for_each import for_each
from tarsy.resources.parse import InvalidResource, parse_object


def stdio(**run: Any) -> dict[str, Any]:
    return server("stdio", image="tools:1", **{"command": ["x"], **run})


def http(**run: Any) -> dict[str, Any]:
    return server("http", **{"image": "tools:1", "port": 8080, **run})


def server(transport: str, **run: Any) -> dict[str, Any]:
    spec = {"transport": {"type": transport}, "run": run}
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": "MCPServer", "metadata": {"name": "m"}, "spec": spec}


def amounts(of: str, **values: str) -> dict[str, Any]:
    return stdio(resources={of: values})


VARIABLE = {"name": "A", "value": "b"}


@for_each(
    ("good", "bad"),
    [
        (http(image="i" * 512), http(image="i" * 513)),
        (http(image="i"), http(image="")),
        (http(image="registry.example.com:5000/a/b@sha256:0a"), http(image="registry.example.com/a b")),
        (http(image="a"), http(image="-a")),
        (stdio(command=["x"]), stdio(command=[])),
        (stdio(command=["x"] * 64), stdio(command=["x"] * 65)),
        (stdio(command=["x" * 4096]), stdio(command=["x" * 4097])),
        (stdio(args=["x"] * 64), stdio(args=["x"] * 65)),
        (stdio(args=["x" * 4096]), stdio(args=["x" * 4097])),
        (stdio(env=[{"name": f"A{n}", "value": ""} for n in range(64)]), stdio(env=[VARIABLE | {"name": "A" * 257}])),
        (
            stdio(env=[{"name": f"A{n}", "value": ""} for n in range(64)]),
            stdio(env=[{"name": f"A{n}", "value": ""} for n in range(65)]),
        ),
        (stdio(env=[VARIABLE]), stdio(env=[VARIABLE, VARIABLE])),
        (http(port=1), http(port=0)),
        (http(port=65535), http(port=65536)),
        (http(serviceAccountName="a" * 253), http(serviceAccountName="a" * 254)),
        (http(serviceAccountName="reader"), http(serviceAccountName="Reader")),
        (http(scope="PerRun"), http(scope="Everywhere")),
        (http(scope="PerRun", kubeconfig=True), http(scope="PerRun", kubeconfig="yes")),
        *(
            (amounts(of, **{name: good}), amounts(of, **{name: bad}))
            for of in ("requests", "limits")
            for name in ("cpu", "memory")
            for good, bad in (("250m", "a lot"), ("1.5Gi", "1.5 Gi"), ("1" * 32, "1" * 33), ("1", ""), ("0", "-1"))
        ),
        (stdio(), stdio(privileged=True)),
    ],
)
def test_at_the_limit_is_good_and_beyond_it_is_not(good: dict[str, Any], bad: dict[str, Any]) -> None:
    parse_object(good)
    with pytest.raises(InvalidResource):
        parse_object(bad)
