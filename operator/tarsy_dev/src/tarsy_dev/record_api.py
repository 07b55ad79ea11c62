"""Registers the aggregated API on one machine: the shipped APIService, directed to a local port.

Decision: its Service is of type ExternalName, which every API server follows without a pod network; so the front proxy,
its certificates and the APIService work here as they do in a cluster.
"""

from typing import Any

from tarsy.kube.client import KubeClient
from tarsy_dev.objects import manifest, put

HOST = "127.0.0.1"


async def install_record_api(client: KubeClient, port: int) -> None:
    """Makes the Kubernetes API forward `record.tarsy.dev` to a local port."""
    for obj in manifest("base/record-api.yaml"):
        if obj["kind"] == "APIService":
            await put(client, _led_to(obj, port))
        elif obj["metadata"]["name"] == "tarsy-record":
            external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
            await put(client, {**obj, "spec": external})


def http_arguments(port: int, record_port: int) -> list[str]:
    """Returns the options of `tarsy run` that serve the API on this machine only; port 0 means a free one."""
    return ["--http-host", HOST, "--http-port", str(port), "--record-port", str(record_port)]


def _led_to(api_service: dict[str, Any], port: int) -> dict[str, Any]:
    spec = api_service["spec"]
    return {**api_service, "spec": {**spec, "service": {**spec["service"], "port": port}}}
