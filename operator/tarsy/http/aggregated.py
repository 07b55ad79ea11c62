"""Serves `record.tarsy.dev` as an aggregated API (APIService) behind the Kubernetes API.

Every kubeconfig works here, client certificates included, and so does `kubectl get --raw`: the Kubernetes API
authenticates its caller, authorizes by the same resource names as this server, and forwards the request with its own
client certificate and the name of the caller in headers. The headers count only with the certificate of the front
proxy: the socket accepts no other (`admission/tls.py`), and each request is checked for its common name.

Decision: this API supports no watch and no write; discovery contains only the served resources, so that namespace
deletion and garbage collection find nothing to do in this group.
"""

from typing import Any

from aiohttp import web

from tarsy.http.authentication.front_proxy import FrontProxy
from tarsy.http.authentication.identity import Caller
from tarsy.http.errors import HttpError, Unauthorized
from tarsy.http.models import AGGREGATED_PREFIX, RECORD_GROUP, RECORD_VERSION

STREAM_SECONDS = 50.0
"""Maximum duration of a stream: kube-apiserver ends requests but watches and logs after 60 s (--request-timeout)."""
_GROUP_VERSION = f"{RECORD_GROUP}/{RECORD_VERSION}"
SERVED = {
    "investigations/events": ("InvestigationEvents", "get"),
    "investigations/timeline": ("InvestigationTimeline", "get"),
    "investigations/trace": ("InvestigationTrace", "get"),
    "investigations/review": ("InvestigationReview", "get"),
    "investigations/score": ("InvestigationScore", "get"),
    "evalsuites/scores": ("EvalSuiteScores", "get"),
    "mcpservers/tools": ("MCPServerTools", "get"),
    "skills/text": ("SkillText", "get"),
    "changes": ("Changes", "list"),
    "triage": ("Triage", "list"),
    "reviews": ("Reviews", "list"),
    "calibration": ("Calibration", "list"),
    "queue": ("Queue", "list"),
    "workers": ("Workers", "list"),
    "objects": ("Objects", "list"),
    "transitions": ("Transitions", "list"),
    "toolapprovals/evidence": ("ToolApprovalEvidence", "get"),
}
"""Kind and verb of each served resource; the verb is that by which the Kubernetes API authorizes its path."""
CLUSTER_SCOPED = frozenset({"workers"})


class AggregatedFrontend:
    """Authenticates callers by the headers of the front proxy; returns errors as metav1.Status.

    Args:
        front: the trusted front proxy.
    """

    name = "aggregated"
    prefix = AGGREGATED_PREFIX
    stream_seconds = STREAM_SECONDS

    def __init__(self, front: FrontProxy) -> None:
        self._front = front

    async def caller(self, request: web.Request) -> Caller:
        """Returns the caller that the front proxy names.

        Raises:
            Unauthorized: the connection is not that of the front proxy, or it names no user.
        """
        self.demand_front_proxy(request)
        return self._front.caller(request.headers)

    def demand_front_proxy(self, request: web.Request) -> None:
        """Raises Unauthorized if the connection is not that of the front proxy."""
        peer = request.transport.get_extra_info("peercert") if request.transport is not None else None
        if not self._front.is_named(peer):
            text = "only the aggregation layer of the Kubernetes API may send requests to this endpoint"
            raise Unauthorized(text, challenge="mutual-TLS")

    def error(self, error: HttpError) -> web.Response:
        """Converts an error to a metav1.Status."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": error.message,
            "reason": error.reason,
            "code": error.status,
        }
        if "Retry-After" in error.headers:
            body["details"] = {"retryAfterSeconds": int(error.headers["Retry-After"])}
        return web.json_response(body, status=error.status, headers=error.headers)


def add_discovery(app: web.Application, frontend: AggregatedFrontend) -> None:
    """Serves discovery (group, version, resources, OpenAPI), which the aggregator and kubectl require.

    Args:
        app: the application of the aggregated port.
        frontend: authenticates the front proxy.
    """

    def serve(path: str, document: dict[str, Any]) -> None:
        async def answer(request: web.Request) -> web.Response:
            frontend.demand_front_proxy(request)
            return web.json_response(document)

        app.router.add_get(path, answer)

    version = {"groupVersion": _GROUP_VERSION, "version": RECORD_VERSION}
    group = {"name": RECORD_GROUP, "versions": [version], "preferredVersion": version}
    serve("/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})
    serve(f"/apis/{RECORD_GROUP}", {"kind": "APIGroup", "apiVersion": "v1", **group})
    serve(
        AGGREGATED_PREFIX,
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": _GROUP_VERSION,
            "resources": [
                {
                    "name": name,
                    "singularName": "",
                    "namespaced": name not in CLUSTER_SCOPED,
                    "kind": kind,
                    "verbs": [verb],
                }
                for name, (kind, verb) in SERVED.items()
            ],
        },
    )
    info = {"title": RECORD_GROUP, "version": RECORD_VERSION}
    serve("/openapi/v2", {"swagger": "2.0", "info": info, "paths": {}})
    serve("/openapi/v3", {"paths": {}})
    for path in ("/healthz", "/livez", "/readyz"):
        serve(path, {"status": "ok"})
