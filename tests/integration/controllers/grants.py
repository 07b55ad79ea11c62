"""Grants the rights of the shipped manifests and writes a kubeconfig of the identity that has them."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

import rights
from apis import LocalApi
from integration.controllers.desk import Desk
from tarsy.kube.client import KubeClient
from tarsy_dev.objects import documents

ACCOUNT = "tarsy-agent"
"""The account that the component `tenant-agents` lets agents act as."""
COMPONENT = ("serviceaccount", "tokens", "run-secrets")


def shipped(folder: str, *names: str) -> list[dict[str, Any]]:
    """The objects of files of `manifests`."""
    root = files("tarsy").joinpath("manifests", *folder.split("/"))
    return [dict(doc) for name in names for doc in documents(root.joinpath(f"{name}.yaml").read_text("utf-8"))]


async def operator_kubeconfig(kube: KubeClient, api: LocalApi, folder: Path, *names: str) -> Path:
    """A kubeconfig of the operator's ServiceAccount, with the rights that these files of the base give it."""
    await rights.put_rights(kube, shipped("base", *names))
    document: dict[str, Any] = yaml.safe_load(api.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": await kube.create_token("tarsy-system", "tarsy-operator")}
    path = folder / "operator.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def let_in(desk: Desk) -> None:
    """What the component does for a namespace."""
    there = shipped("components/tenant-agents", *COMPONENT)
    placed = [{**doc, "metadata": {**doc["metadata"], "namespace": desk.namespace}} for doc in there]
    await rights.put_rights(desk.kube, placed)
