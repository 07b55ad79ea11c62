"""Builds JSON responses in the form that the client accepts: objects, tables, or metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from embedded_kubeapi.errors import ApiError, PageNotFound, not_acceptable
from embedded_kubeapi.http.request import BODIES
from embedded_kubeapi.objects import Obj, dumps
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.table import table

_ACCEPTED = (*BODIES, "application/*", "*/*")
_META = "meta.k8s.io/v1"


@dataclass(frozen=True)
class Form:
    """The response form that the client requests; `include` selects the content of table rows."""

    kind: str = ""
    include: str = "Metadata"


def form_of(accept: str, include: str) -> Form:
    """Returns the first supported form in an Accept header.

    Raises:
        ApiError: 406, there is none.
    """
    acceptable = not accept
    for part in accept.split(","):
        if part.partition(";")[0].strip() not in _ACCEPTED:
            continue
        acceptable = True
        fields = dict(field.strip().split("=", 1) for field in part.split(";")[1:] if "=" in field)
        kind = fields.get("as", "")
        if kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            if fields.get("v", "v1") == "v1":
                return Form("Table" if kind == "Table" else "Metadata", include or "Metadata")
        elif not kind and "json" in part:
            break
    if not acceptable:
        raise not_acceptable(BODIES)
    return Form()


def json_answer(body: Any, status: int = 200, warnings: Sequence[str] = ()) -> web.Response:
    """Builds a response with warnings as headers, which kubectl prints."""
    answer = web.Response(body=dumps(body), status=status, content_type="application/json")
    for warning in warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        answer.headers.add("Warning", f'299 - "{escaped}"')
    return answer


def failure(error: ApiError, warnings: Sequence[str] = ()) -> web.Response:
    """Builds the `Status` response of an error."""
    if isinstance(error, PageNotFound):
        return web.Response(text=f"{error.message}\n", status=error.code)
    return json_answer(error.status(), error.code, warnings)


def shown(resource: Resource, obj: Obj, form: Form, headers: bool = True) -> Obj:
    """Builds the response with one object in the requested form."""
    obj = resource.shown(obj)
    if form.kind == "Table":
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return table(resource, [obj], meta, form.include, headers)
    return _metadata_only(obj) if form.kind else obj


def shown_list(resource: Resource, items: Sequence[Obj], meta: Obj, form: Form) -> Obj:
    """Builds the response with a list in the requested form; `meta` is the ListMeta."""
    items = [resource.shown(obj) for obj in items]
    if form.kind == "Table":
        return table(resource, items, meta, form.include)
    if form.kind:
        partial = [_metadata_only(obj) for obj in items]
        return {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": meta, "items": partial}
    kind = resource.list_kind or resource.kind + "List"
    if resource.custom:
        meta = {"continue": "", **meta}
    else:
        items = [{key: value for key, value in obj.items() if key not in ("apiVersion", "kind")} for obj in items]
    return {"kind": kind, "apiVersion": resource.api_version, "metadata": meta, "items": items}


def _metadata_only(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def deleted(resource: Resource, obj: Obj) -> Obj:
    """Builds the response to a deletion."""
    meta = obj["metadata"]
    details = {"name": meta["name"], "group": resource.group, "kind": resource.plural, "uid": meta["uid"]}
    found = {key: value for key, value in details.items() if value}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": found}
