"""Serves an incident by the embedded API, and reads it by HTTP: with the product's reader, and with a real tool server.

The objects are restored from a file as an API server restores a backup, because no client may choose the uid of an
object or the time of its creation, and both are evidence. From there on everything is read by HTTP.
"""

import contextlib
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from e2e.kubernetes_mcp import serving
from embedded_kubeapi.server import EmbeddedApi
from tarsy.evidence.reading import KINDS, CannotRead, ReadKind, read_snapshot
from tarsy.evidence.snapshot import Snapshot
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.incidents.corpus import READ_AT, Incident

_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PLACES = {one.kind: one for one in KINDS}
_AGES_WITHIN = timedelta(minutes=1)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?=(?:\.\d+)?(?:Z| \+0000 UTC))")


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool server answered.

    Attributes:
        tool: its name.
        arguments: of the call.
        text: of the answer, with times as if the incident were read at `READ_AT`.
        is_error: whether the tool failed.
    """

    tool: str
    arguments: Mapping[str, str]
    text: str
    is_error: bool


@contextlib.contextmanager
def serve(incident: Incident) -> Iterator[EmbeddedApi]:
    """Runs an API whose objects are those of an incident."""
    with tempfile.TemporaryDirectory(prefix="tarsy-incident-") as folder:
        kept = Path(folder) / "objects"
        kept.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in _lines(incident)))
        with EmbeddedApi(Path(folder) / "state", keep=kept) as api:
            yield api


def _lines(incident: Incident) -> Iterator[Sequence[Any]]:
    meta = _old(incident.namespace)
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "status": {"phase": "Active"}}
    yield "", "namespaces", "", incident.namespace, place
    for kind in {one["kind"] for one in incident.objects} & {one.kind for one in KINDS if one.optional}:
        served = _definition(_PLACES[kind])
        yield "apiextensions.k8s.io", "customresourcedefinitions", "", served["metadata"]["name"], served
    for one in incident.objects:
        if (read := _PLACES.get(one["kind"])) is not None:
            of = one["metadata"]
            yield _group(read), read.plural, of.get("namespace") or "", of["name"], one


def _old(name: str) -> dict[str, str]:
    """Returns the metadata of an object that was there long before every incident."""
    at = (READ_AT - timedelta(days=365)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": at, "resourceVersion": "1"}


def _group(read: ReadKind) -> str:
    return read.group.split("/")[2] if read.group.startswith("/apis/") else ""


def _definition(read: ReadKind) -> dict[str, Any]:
    """Returns a CRD of a kind that no API server has by itself."""
    group, version = _group(read), read.group.split("/")[-1]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": read.plural, "singular": read.kind.lower(), "kind": read.kind, "listKind": f"{read.kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _old(f"{read.plural}.{group}"),
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
        "status": {
            "conditions": [{"type": kind, "status": "True"} for kind in ("NamesAccepted", "Established")],
            "acceptedNames": names,
            "storedVersions": [version],
        },
    }


async def read(client: KubeClient, namespace: str, read_at: datetime, kinds: Sequence[ReadKind] = KINDS) -> Snapshot:
    """Reads the snapshot of a namespace as the product does."""

    async def get(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        accept = _METADATA if metadata_only else "application/json"
        try:
            return await client.request("GET", path, query=query, accept=accept)
        except ApiError as error:
            raise CannotRead(error.status, error.message) from error

    return await read_snapshot(get, namespace, read_at, kinds)


@contextlib.asynccontextmanager
async def tool_server(kubeconfig: Path) -> AsyncIterator[Client]:
    """Connects to a tool server of its own, `kubernetes-mcp-server`.

    Raises:
        NotToBeHad: it is not on this machine and cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="tarsy-incident-") as folder:
        async with serving(kubeconfig, Path(folder)) as url, Client(streamable_http_client(f"{url}/mcp")) as client:
            yield client


def tool_calls(incident: Incident) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Returns the first calls of somebody who looks into an incident: pods, Events and the target."""
    target = incident.target
    place = {"namespace": target.namespace} if target.namespace else {}
    version = next(str(one["apiVersion"]) for one in incident.objects if one["kind"] == target.kind)
    return (
        ("pods_list_in_namespace", {"namespace": incident.namespace}),
        ("events_list", {"namespace": incident.namespace}),
        ("resources_get", {"apiVersion": version, "kind": target.kind, "name": target.name, **place}),
    )


async def tool_answers(client: Client, incident: Incident) -> Sequence[ToolAnswer]:
    """Returns what a tool server shows of an incident that it reads now.

    Raises:
        ValueError: the incident is not of the present, so that the server would tell wrong ages.
    """
    if abs(datetime.now(UTC) - incident.read_at) > _AGES_WITHIN:
        raise ValueError(f"the incident {incident.name} is not of the present; load it with read_at=now")
    answers = []
    for tool, arguments in tool_calls(incident):
        result = await client.call_tool(tool, dict(arguments))
        text = "\n".join(part.text for part in result.content if part.type == "text")
        answers.append(ToolAnswer(tool, arguments, _at_read_at(text, incident.read_at), bool(result.is_error)))
    return answers


def _at_read_at(text: str, read_at: datetime) -> str:
    """Returns a text with its times moved from an incident of the present to one that is read at `READ_AT`."""

    def moved(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[0]).replace(tzinfo=UTC) + (READ_AT - read_at)
        return at.strftime(f"%Y-%m-%d{found[1]}%H:%M:%S")

    return _TIME.sub(moved, text)
