"""Handles a request from authentication and authorization to its response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from embedded_kubeapi.auth.identity import authenticate, impersonated
from embedded_kubeapi.auth.rbac import Rbac
from embedded_kubeapi.auth.tokens import TokenIssuer
from embedded_kubeapi.call import Attributes, Call, Caller
from embedded_kubeapi.errors import (
    ApiError,
    PageNotFound,
    bad_request,
    forbidden,
    no_such_method,
    no_such_path,
    not_found,
    unsupported_media,
)  # fmt: skip
from embedded_kubeapi.http import discovery, openapi
from embedded_kubeapi.http.answers import deleted, failure, form_of, json_answer, shown
from embedded_kubeapi.http.openapi_proto import encode_v2
from embedded_kubeapi.http.proxy import Proxy
from embedded_kubeapi.http.reading import list_objects
from embedded_kubeapi.http.request import (
    Target,
    attributes_of,
    body_of,
    call_of,
    delete_options,
    is_true,
    required_body,
    target_of,
    verb_of,
)  # fmt: skip
from embedded_kubeapi.http.reviews import Reviews
from embedded_kubeapi.http.watching import Watch
from embedded_kubeapi.lifecycle import NAMESPACES
from embedded_kubeapi.objects import Obj, copy, now
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.selectors import predicate
from embedded_kubeapi.store import Store
from embedded_kubeapi.writes import PatchKind, Writes

MAJOR, MINOR = 1, 36
_log = logging.getLogger(__name__)
_PATCHES: dict[str, PatchKind] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2"  # then @v1.0+protobuf, or .v1.0+protobuf
_HEALTH = ("/healthz", "/livez", "/readyz")


@dataclass(frozen=True)
class Parts:
    """The parts that handle requests."""

    store: Store
    registry: Registry
    writes: Writes
    rbac: Rbac
    tokens: TokenIssuer
    proxy: Proxy


@dataclass(frozen=True)
class Ask:
    """A resource request with its caller and options."""

    request: web.BaseRequest
    caller: Caller
    target: Target
    resource: Resource
    call: Call


class App:
    """Handles the requests of a server."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._reviews = Reviews(parts.rbac, parts.tokens)
        self._v2_protobuf = (-1, b"")  # of which revision of the registry, and the document
        self._writers: dict[str, Callable[[Ask], Awaitable[web.StreamResponse]]] = {
            "POST": self._create,
            "PUT": self._update,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handles a request; every failure becomes a response."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return failure(error)
        except (asyncio.CancelledError, ConnectionResetError):
            raise
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            return failure(ApiError(500, "InternalError", f"Internal error occurred: {type(error).__name__}: {error}"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        peer = transport.get_extra_info("peercert") if transport else None
        caller = authenticate(peer, request.headers.get("Authorization", ""), self._parts.tokens)
        caller = impersonated(caller, request.headers, self._parts.rbac)  # type: ignore[arg-type]
        target = target_of(request.path)
        if target is None:
            return await self._plain_path(request, caller)
        watch = is_true(request.query, "watch")
        verb = verb_of(request.method, target, watch)
        self._authorize(caller, attributes_of(verb, target))
        if service := self._parts.proxy.service_for(target.group, target.version):
            return await self._parts.proxy.forward(service, request, caller)
        resource = self._parts.registry.find(target.group, target.version, target.resource)
        if resource is None:
            raise self._nothing_there(target)
        _check_place(resource, target, request.method)
        if verb not in resource.verbs and not target.subresource:
            raise no_such_method()
        form_of(request.headers.get("Accept", ""), "")
        apply = request.headers.get("Content-Type", "").startswith("application/apply-patch")
        call = call_of(caller, request.query, request.headers.get("User-Agent", ""), request.method, apply)
        if resource.deprecated:
            call.warn(resource.deprecated)
        ask = Ask(request, caller, target, resource, call)
        try:
            if request.method in self._writers:
                return await self._writers[request.method](ask)
            return await self._read(ask, watch)
        except ApiError as error:
            return failure(error, call.warnings)

    def _nothing_there(self, target: Target) -> ApiError:
        known = self._parts.registry.resources(target.group, target.version)
        return no_such_path() if any(not resource.custom for resource in known) else PageNotFound()

    def _authorize(self, caller: Caller, attributes: Attributes) -> None:
        decision = self._parts.rbac.decide(caller, attributes)
        if decision.allowed:
            return
        if attributes.path:
            text = f'forbidden: User "{caller.name}" cannot {attributes.verb} path "{attributes.path}"'
            raise ApiError(403, "Forbidden", text, {})
        resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
        why = f'User "{caller.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}"'
        namespace = attributes.namespace
        why += f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
        raise forbidden(attributes.group, attributes.resource, attributes.name, why)

    async def _plain_path(self, request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        self._authorize(caller, Attributes(request.method.lower(), path=path))
        parts = path.split("/")[1:]
        if parts[0] == "apis" and len(parts) == 3 and (service := self._parts.proxy.service_for(parts[1], parts[2])):
            return await self._parts.proxy.forward(service, request, caller)
        if request.method not in ("GET", "HEAD"):
            raise no_such_method()
        if any(path == health or path.startswith(health + "/") for health in _HEALTH):
            return web.Response(text="ok")
        if path == "/version":
            return json_answer(_version())
        if parts == ["openapi", "v2"] and _V2_PROTOBUF in request.headers.get("Accept", ""):
            return web.Response(body=self._openapi_v2(), content_type="application/octet-stream")
        if parts[0] == "openapi":
            return json_answer(self._openapi(parts[1:]))
        if path in ("/api", "/apis") and (version := discovery.aggregated_version(request.headers.get("Accept", ""))):
            body, content_type = discovery.aggregated(self._parts.registry, path == "/api", version)
            if path == "/api" or not self._parts.proxy.groups():  # others' groups are told in the old form only
                answer = json_answer(body)
                answer.headers["Content-Type"] = content_type
                return answer
        return json_answer(self._discovery(parts))

    def _discovery(self, parts: list[str]) -> Obj:
        registry, proxied = self._parts.registry, self._parts.proxy.groups()
        match parts:
            case [""]:
                groups = registry.groups().items()
                return {
                    "paths": ["/api", "/api/v1", "/apis", *(f"/apis/{g}/{v}" for g, vs in groups for v in vs), *_HEALTH]
                }
            case ["api"]:
                return discovery.api_versions()
            case ["api", "v1"]:
                return discovery.resource_list(registry.resources("", "v1"), "v1")
            case ["apis"]:
                return discovery.group_list(registry, proxied)
            case ["apis", group] if group in (groups_now := discovery.all_groups(registry, proxied)):
                return discovery.api_group(group, groups_now[group])
            case ["apis", group, version] if found := registry.resources(group, version):
                return discovery.resource_list(found, f"{group}/{version}")
        raise PageNotFound()

    def _openapi_v2(self) -> bytes:
        revision = self._parts.registry.revision
        if self._v2_protobuf[0] != revision:
            self._v2_protobuf = revision, encode_v2(openapi.document_v2(self._parts.registry))
        return self._v2_protobuf[1]

    def _openapi(self, parts: list[str]) -> Obj:
        registry = self._parts.registry
        match parts:
            case ["v2"]:
                return openapi.document_v2(registry)
            case ["v3"]:
                return openapi.index(registry)
            case ["v3", "api", version] if found := registry.resources("", version):
                return openapi.document_v3(found)
            case ["v3", "apis", group, version] if found := registry.resources(group, version):
                return openapi.document_v3(found)
        raise no_such_path()

    async def _read(self, ask: Ask, watch: bool) -> web.StreamResponse:
        query, target, resource = ask.request.query, ask.target, ask.resource
        form = form_of(ask.request.headers.get("Accept", ""), query.get("includeObject", ""))
        if watch:
            return await Watch(self._parts.store, resource, target, query, form).serve(ask.request)
        if target.subresource == "log":
            self._parts.writes.get(resource, target.namespace, target.name)
            return web.Response(status=204)  # what the real API says of a pod that no kubelet runs
        if target.subresource == "scale":
            return json_answer(_scale(self._parts.writes.get(resource, target.namespace, target.name)))
        if target.name:
            obj = self._parts.writes.get(resource, target.namespace, target.name)
            return json_answer(shown(resource, obj, form), 200, ask.call.warnings)
        return json_answer(list_objects(self._parts.store, resource, target, query, form), 200, ask.call.warnings)

    async def _create(self, ask: Ask) -> web.StreamResponse:
        target, resource = ask.target, ask.resource
        body = required_body(await ask.request.read(), ask.request.content_type)
        if target.subresource == "token":
            account = self._parts.writes.get(resource, target.namespace, target.name)
            return json_answer(self._parts.tokens.issue(account, body), 201)
        if target.subresource == "eviction":
            await self._parts.writes.delete(resource, target.namespace, target.name, {}, ask.call)
            return json_answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201)
        if target.name:
            raise no_such_method()
        if not resource.stored:
            return json_answer(self._reviews.answer(resource, body, ask.caller, target.namespace), 201)
        made = await self._parts.writes.create(resource, target.namespace, body, ask.call)
        return self._written(ask, made, 201)

    async def _update(self, ask: Ask) -> web.StreamResponse:
        target, resource = ask.target, ask.resource
        body = required_body(await ask.request.read(), ask.request.content_type)
        subresource = target.subresource
        if subresource == "scale":
            patch = {"spec": {"replicas": ((body or {}).get("spec") or {}).get("replicas", 0)}}
            made, _ = await self._parts.writes.patch(resource, target.namespace, target.name, "merge", patch, ask.call)
            return json_answer(_scale(made))
        if subresource == "finalize":
            return json_answer(self._parts.writes.get(resource, target.namespace, target.name))
        subresource = "status" if subresource == "approval" else subresource
        made = await self._parts.writes.update(resource, target.namespace, target.name, body, ask.call, subresource)
        return self._written(ask, made, 200)

    async def _patch(self, ask: Ask) -> web.StreamResponse:
        target, resource = ask.target, ask.resource
        content_type = ask.request.content_type
        kind = _PATCHES.get(content_type)
        accepted = [media for media, kind in _PATCHES.items() if not (resource.custom and kind == "strategic")]
        if kind is None or content_type not in accepted:
            raise unsupported_media(accepted)
        body = required_body(await ask.request.read(), content_type, accepted)
        subresource = "" if target.subresource == "scale" else target.subresource
        made, new = await self._parts.writes.patch(
            resource, target.namespace, target.name, kind, body, ask.call, subresource
        )
        return (
            json_answer(_scale(made))
            if target.subresource == "scale"
            else self._written(ask, made, 201 if new else 200)
        )

    async def _delete(self, ask: Ask) -> web.StreamResponse:
        target, resource, query = ask.target, ask.resource, ask.request.query
        options = delete_options(query, body_of(await ask.request.read(), ask.request.content_type))
        if options.get("dryRun") == ["All"]:
            ask.call.dry_run = True
        if target.name:
            return json_answer(
                await self._delete_one(ask, target.namespace, target.name, options), 200, ask.call.warnings
            )
        shows = predicate(resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        gone = []
        for obj in self._parts.store.objects(resource.key, target.namespace):
            meta = obj["metadata"]
            if shows(obj) and self._parts.store.get(resource.key, meta.get("namespace"), meta["name"]) is not None:
                await self._delete_one(ask, meta.get("namespace"), meta["name"], options)
                gone.append(obj)
        listed = {"kind": resource.list_kind, "apiVersion": resource.api_version, "items": gone}
        meta = {"continue": ""} if resource.custom else {}
        meta["resourceVersion"] = str(self._parts.store.revision)
        return json_answer({**listed, "metadata": meta})

    async def _delete_one(self, ask: Ask, namespace: str | None, name: str, options: dict[str, Any]) -> Obj:
        obj = await self._parts.writes.delete(ask.resource, namespace, name, options, ask.call)
        held = self._parts.store.get(ask.resource.key, obj["metadata"].get("namespace"), name)
        if ask.call.dry_run or held is None:
            if ask.resource.key == ("", "pods") or ask.resource.key == ("", "namespaces"):
                return obj
            return deleted(ask.resource, obj)
        return obj

    def _written(self, ask: Ask, obj: Obj, status: int) -> web.Response:
        form = form_of(ask.request.headers.get("Accept", ""), "")
        return json_answer(shown(ask.resource, obj, form), status, ask.call.warnings)


def _check_place(resource: Resource, target: Target, method: str) -> None:
    """Raises ApiError for a path or method that the kind does not support."""
    misplaced = (
        (not resource.namespaced and target.namespace is not None and resource.key != NAMESPACES)
        or (resource.namespaced and target.namespace is None and (target.name or method == "POST"))
    )  # fmt: skip
    if misplaced and resource.custom:
        raise PageNotFound()
    if misplaced:
        raise no_such_method() if method == "POST" and resource.namespaced else no_such_path()
    if target.subresource and target.subresource not in resource.subresources:
        if resource.custom:
            raise not_found(resource.group, resource.plural, target.name)
        raise no_such_path()
    if method == "HEAD":
        raise no_such_method()
    if method in ("PUT", "PATCH") and not target.name:
        raise bad_request("name must be provided") if resource.custom else no_such_method()


def _scale(obj: Obj) -> Obj:
    meta = {key: obj["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": copy(meta),
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": selector},
    }


def _version() -> Obj:
    text = {"gitVersion": f"v{MAJOR}.{MINOR}.0+tarsy-embedded", "gitCommit": "", "gitTreeState": "clean"}
    other = {"emulationMajor": str(MAJOR), "emulationMinor": str(MINOR), "minCompatibilityMajor": str(MAJOR),
             "minCompatibilityMinor": str(MINOR - 1)}  # fmt: skip
    built = {"buildDate": now(), "goVersion": "", "compiler": "", "platform": "python/any"}
    return {"major": str(MAJOR), "minor": str(MINOR), **other, **text, **built}
