"""Keeps the workload of an MCPServer with `spec.run` as its object declares it.

Watches: nothing of its own; `controllers.mcp_server` asks at each look at an MCPServer. Decides: which objects there
shall be (`tarsy.controllers.tool_workloads.objects`), whether those of their names are this MCPServer's, whether its
pod is ready. Writes: Secret (once), NetworkPolicy, Service and Deployment, by server-side apply, as owned by the
MCPServer: they go with it, and are deleted when `run` is taken away. For scope PerRun only the NetworkPolicy is made
here; the rest is made for each run (`tarsy.controllers.tool_workloads.per_run`).

A name that is taken by something else is never taken over: an object's author must not reach through the operator.
"""

import secrets as random_secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tarsy.controllers.configuration import ConfigurationProblem
from tarsy.controllers.tool_workloads import objects
from tarsy.controllers.tool_workloads.gateway_image import CONTAINER, DEPLOYMENT
from tarsy.controllers.tool_workloads.pod_rules import PodSettings, lacks_gateway, pod_rules
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.plan.workload import workload_name
from tarsy.resources.v1alpha1.mcp_server import MCPServer

FIELD_MANAGER = "tarsy-operator"
NOT_READY_SECONDS = 5.0
SETTLED_SECONDS = 60.0
_KINDS = ("Deployment", "Service", "Secret", "NetworkPolicy")
COMPONENT = "tenant-workloads"
_NO_IMAGE = (
    f"a stdio server needs the image of its gateway, and TARSy cannot read its own from container {CONTAINER} of "
    f"Deployment {DEPLOYMENT}; set controller.gatewayImage (--gateway-image)"
)


@dataclass(frozen=True, slots=True)
class Workload:
    """Describes a server's workload.

    Args:
        name: of its objects; None when there is none.
        problems: what makes the server not Ready, each with a reason.
        again: after how many seconds to look again; None: no need.
    """

    name: str | None = None
    problems: Sequence[ConfigurationProblem] = ()
    again: float | None = None


async def keep_workload(server: MCPServer, client: KubeClient, settings: PodSettings) -> Workload:
    """Creates, updates or deletes the workload of a server.

    Args:
        server: the object, which has no errors otherwise.
        client: the Kubernetes API.
        settings: of its pods, and where those run who may reach it.

    Raises:
        ApiError: the Kubernetes API refused (other than by RBAC) or could not be reached.
    """
    at, run, name = FieldPath.of(server) / "run", server.spec.run, workload_name(server.metadata.name)
    try:
        if run is None:
            left = server.status.workload
            await _remove(server, client, _KINDS if left else ())
            return Workload()
        rules = await pod_rules(client, settings, server)
        if lacks_gateway(server, rules):
            return Workload(server.status.workload, [(at.error(_NO_IMAGE), "GatewayImageUnknown")], SETTLED_SECONDS)
        by = objects.owned_by(server)
        wanted = [objects.network_policy(server, by, settings.operator_namespace)]
        if run.scope == "Shared":
            pods = objects.deployment(server, run, by, rules)
            wanted += [objects.service(server, by), pods]
            await _keep_secret(server, client, by)
        else:
            await _remove(server, client, ("Deployment", "Service", "Secret"))
        applied: Mapping[str, Any] = {}
        for obj in wanted:
            await _own_or_none(server, client, obj["kind"], obj["metadata"]["name"])
            applied = await client.apply(obj, manager=FIELD_MANAGER)
    except Taken as taken:
        problem = at.error(f"{taken}; rename the MCPServer, or delete that object")
        return Workload(name, [(problem, "WorkloadNameTaken")], NOT_READY_SECONDS)
    except ApiError as error:
        if error.reason == "Forbidden":
            return Workload(
                server.status.workload, [(at.error(_forbidden(server)), "WorkloadForbidden")], SETTLED_SECONDS
            )
        if error.reason != "Invalid":
            raise
        problem = at.error(f"the API server rejects its {error.message}; correct the field it names")
        return Workload(name, [(problem, "WorkloadInvalid")], SETTLED_SECONDS)
    if run.scope == "PerRun" or _is_ready(applied):
        return Workload(name, again=SETTLED_SECONDS)
    problem = at.error(
        f"Deployment {name} has no ready pod yet; run kubectl describe on it and its pods in namespace "
        f"{server.metadata.namespace}"
    )
    return Workload(name, [(problem, "WorkloadNotReady")], NOT_READY_SECONDS)


class Taken(Exception):
    """Raised when another owner has an object of this name."""


async def _keep_secret(server: MCPServer, client: KubeClient, by: objects.Object) -> None:
    """Creates the Secret once and never changes it: to rotate the token, delete it."""
    name = workload_name(server.metadata.name)
    if await _own_or_none(server, client, "Secret", name) is None:
        await client.create(objects.secret(server, by, new_token()))


def new_token() -> str:
    """Generates a random token."""
    return random_secrets.token_urlsafe(32)


async def _own_or_none(server: MCPServer, client: KubeClient, kind: str, name: str) -> dict[str, Any] | None:
    """Returns the object if it is this server's, None if it does not exist.

    Raises:
        Taken: It is somebody else's.
    """
    found = await client.find(kind, server.metadata.namespace, name)
    if found is None:
        return None
    owners = found["metadata"].get("ownerReferences") or ()
    if not any(owner.get("uid") == server.metadata.uid for owner in owners):
        raise Taken(f"{kind} {name} exists and does not belong to this MCPServer")
    return found


async def _remove(server: MCPServer, client: KubeClient, kinds: Sequence[str]) -> None:
    name = workload_name(server.metadata.name)
    for kind in kinds:
        try:
            found = await _own_or_none(server, client, kind, name)
        except Taken:
            continue
        if found is not None:
            await client.delete(kind, server.metadata.namespace, name, uid=found["metadata"]["uid"])


def _is_ready(deployment: Mapping[str, Any]) -> bool:
    status = deployment.get("status") or {}
    seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return bool(seen and status.get("readyReplicas", 0) >= 1)


def _forbidden(server: MCPServer) -> str:
    return (
        f"TARSy may not run workloads in namespace {server.metadata.namespace}; bind its role there (component "
        f"`{COMPONENT}`)"
    )
