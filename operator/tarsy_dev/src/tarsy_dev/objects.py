"""Applies YAML documents to a cluster, like `kubectl apply` of objects with a single writer.

Create, else replace at the version that is there: server-side apply would refuse what an older API server does not know
in a CRD (its rules), while replace drops it, which is what is wanted on such a server. A `status` in a document is
written through the status subresource, so that samples can show Pods that no kubelet runs.
"""

import asyncio
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.crd import crd
from tarsy.resources.v1alpha1 import KINDS

ESTABLISH_SECONDS = 30.0
REPLACE_TRIES = 5


def manifest(name: str) -> list[dict[str, Any]]:
    """Returns the documents of a shipped manifest, such as `samples/demo/crashloop.yaml`."""
    return documents(files("tarsy").joinpath("manifests", name).read_text("utf-8"))


def documents(text: str) -> list[dict[str, Any]]:
    """Returns the objects in a YAML text."""
    return [d for d in yaml.load_all(text, yaml.CSafeLoader) if isinstance(d, dict)]


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """Returns the documents of a YAML file."""
    yield from documents(path.read_text("utf-8"))


async def put(client: KubeClient, obj: dict[str, Any], *, status_by: str | None = None) -> dict[str, Any]:
    """Creates or replaces the object, including its status; returns the stored object.

    Args:
        client: the Kubernetes API.
        obj: the object.
        status_by: field manager that writes the status; None: this program.

    Raises:
        ApiError: the object was refused, or others changed it at each of several tries.
    """
    meta = obj["metadata"]
    try:
        made = await client.create(obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        made = await _replace(client, obj)
    if "status" in obj and obj["kind"] not in ("Event", "Namespace"):
        body, place = {"status": obj["status"]}, (obj["kind"], meta.get("namespace"), meta["name"])
        made = await client.patch(*place, body, subresource="status", manager=status_by)
    return made


async def _replace(client: KubeClient, obj: dict[str, Any]) -> dict[str, Any]:
    """Replaces the object; again where the operator wrote its status between the read and the write."""
    meta = obj["metadata"]
    tries = 0
    while True:
        tries += 1
        there = await client.get(obj["kind"], meta.get("namespace"), meta["name"])
        kept = {"resourceVersion": there["metadata"]["resourceVersion"]}
        try:
            return await client.replace({**obj, "metadata": {**meta, **kept}})
        except ApiError as error:
            if error.reason != "Conflict" or tries == REPLACE_TRIES:
                raise


async def put_all(client: KubeClient, objects: Iterable[dict[str, Any]]) -> None:
    """Creates or replaces objects in order."""
    for obj in objects:
        await put(client, obj)


async def install_crds(client: KubeClient) -> None:
    """Puts the CRDs of this version and waits until the API serves them.

    Raises:
        ApiError: one was refused, or not established in time.
    """
    for kind in KINDS.values():
        await put(client, crd(kind))
    for kind in KINDS.values():
        await _established(client, f"{kind.PLURAL}.tarsy.dev")


async def _established(client: KubeClient, name: str) -> None:
    try:
        async with asyncio.timeout(ESTABLISH_SECONDS):
            while True:
                found = await client.get("CustomResourceDefinition", None, name)
                for condition in (found.get("status") or {}).get("conditions") or ():
                    if condition["type"] == "Established" and condition["status"] == "True":
                        return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise ApiError(0, "Timeout", f"CRD {name} was not established within {ESTABLISH_SECONDS:g} s") from None
