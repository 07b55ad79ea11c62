"""Generates the OpenAPI 3.1 document from the table of routes and its models.

Decision: nothing is written by hand, so the document describes exactly the routes that are served; descriptions of
parameters are in their models. Pydantic generates the JSON Schema draft that OpenAPI 3.1 uses.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

from aiohttp import web
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.json_schema import models_json_schema

from tarsy.http.idempotency import IDEMPOTENCY_KEY, MAX_IDEMPOTENCY_KEY
from tarsy.http.models import DIRECT_PREFIX, View
from tarsy.http.route import PATH_PARAMETERS, CheckedRequest, Route

_Mode = Literal["validation", "serialization"]
_REF: Final = "#/components/schemas/"
_PLACES: Final[Mapping[str, str]] = {
    "namespace": "The namespace.",
    "name": "The name of the object in the path.",
    "id": "The id of the call, as listed in the trace.",
}
_ERRORS: Final[Mapping[str, str]] = {
    "400": "A parameter or the body is invalid; the message names the field and the allowed values.",
    "401": "The request is not authenticated.",
    "403": "The caller is not authorized, whether or not the object exists.",
    "404": "The object or its record does not exist.",
    "409": "The current state of the object does not allow the request.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "The Kubernetes API rejects the object as invalid.",
    "429": "The caller has too many concurrent requests or connections.",
    "500": "Internal error of the server.",
    "503": "The database or the Kubernetes API is unavailable; retry after Retry-After seconds.",
    "504": "The request took too long.",
}
_OF_ALL: Final = ("400", "429", "500", "503", "504")
_OF_CALLERS: Final = ("401", "403")
_OF_WRITES: Final = ("409", "413", "415", "422")


class ErrorDetail(View):
    """Reason and message of an error."""

    reason: str = Field(description="One CamelCase word, for programs.")
    message: str = Field(description="A sentence, for people.")


class ErrorAnswer(View):
    """Body of an error response."""

    error: ErrorDetail


def document(routes: Sequence[Route], also: Iterable[type[BaseModel]] = ()) -> dict[str, Any]:
    """Returns the OpenAPI document.

    Args:
        routes: the table of routes.
        also: further models to describe, such as the messages of the WebSocket.
    """
    schemas = _Schemas(routes, also)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    asked = {schemas.name(route.query, "validation") for route in routes if route.query is not None}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "TARSy",
            "version": _version(),
            "description": "Investigates alerts with chains of agents. The bearer token authenticates the caller; "
            "SubjectAccessReview authorizes each request in the namespace of its path.",
        },
        "servers": [{"url": DIRECT_PREFIX}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in schemas.by_name.items() if name not in asked},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def openapi_route(routes: Sequence[Route], also: Iterable[type[BaseModel]] = ()) -> Route:
    """Returns the route that serves the document of `routes` and of itself."""
    made: dict[Literal["document"], dict[str, Any]] = {}

    async def get_openapi(_: CheckedRequest) -> web.StreamResponse:
        if "document" not in made:
            made["document"] = document((*routes, route), also)
        return web.json_response(made["document"])

    route = Route(
        method="GET",
        path="/openapi.json",
        operation="getOpenapi",
        summary="Get this document",
        handler=get_openapi,
        public=True,
    )
    return route


class _Schemas:
    """All models by name: request models in validation mode, response models in serialization mode."""

    def __init__(self, routes: Sequence[Route], also: Iterable[type[BaseModel]]) -> None:
        read = [model for route in routes for model in (route.query, route.body) if model is not None]
        written = [route.response for route in routes if route.response is not None]
        models: list[tuple[type[BaseModel], _Mode]] = [(model, "validation") for model in read]
        answers: list[type[BaseModel]] = [*written, *also, ErrorAnswer]
        models += [(model, "serialization") for model in answers]
        self._refs, found = models_json_schema(list(dict.fromkeys(models)), ref_template=_REF + "{model}")
        # A model that checks its rules is not referred to, but given in place.
        inline = {model.__name__: schema for (model, _), schema in self._refs.items() if "$ref" not in schema}
        self.by_name: dict[str, dict[str, Any]] = {
            name: _without_titles(schema) for name, schema in sorted({**found["$defs"], **inline}.items())
        }

    def name(self, model: type[BaseModel], mode: _Mode) -> str:
        """Returns the name of the schema of a model."""
        return str(self._refs[model, mode].get("$ref", model.__name__)).removeprefix(_REF)

    def content(self, model: type[BaseModel], mode: _Mode) -> dict[str, Any]:
        """Returns the content object of a body."""
        return {"application/json": {"schema": {"$ref": _REF + self.name(model, mode)}}}


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "parameters": [*map(_in_path, route.parameters), *_in_query(route, schemas), *_in_header(route)],
        "responses": {str(route.status): _success(route, schemas), **_refusals(route, schemas)},
    }
    operation["security"] = [] if route.public else [{"token": []}]
    if route.permission is not None:
        permission = route.permission
        resource = "/".join(part for part in (permission.resource, permission.subresource) if part)
        operation["description"] = f"Requires `{permission.verb}` on `{resource}` of `{permission.group}`."
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": schemas.content(route.body, "validation")}
    return operation


def _in_path(name: str) -> dict[str, Any]:
    schema = TypeAdapter(PATH_PARAMETERS[name]).json_schema()
    return {"name": name, "in": "path", "required": True, "description": _PLACES[name], "schema": schema}


def _in_query(route: Route, schemas: _Schemas) -> Iterable[dict[str, Any]]:
    if route.query is None:
        return
    model = schemas.by_name[schemas.name(route.query, "validation")]
    for name, schema in model["properties"].items():
        described = {key: value for key, value in schema.items() if key != "description"}
        yield {
            "name": name,
            "in": "query",
            "required": name in model.get("required", ()),
            "description": schema.get("description", ""),
            "schema": _never_null(described),
        }


def _in_header(route: Route) -> Iterable[dict[str, Any]]:
    if route.idempotent:
        yield {
            "name": IDEMPOTENCY_KEY,
            "in": "header",
            "required": False,
            "description": "Makes a retry safe: a request of the same caller with the same key and an equal body "
            "returns "
            "the object that the first one created, as long as it exists. Another body yields 422.",
            "schema": {"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY},
        }


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Removes null from the schema of a parameter: a parameter is omitted, never null."""
    if schema.get("default", ...) is None:
        schema.pop("default")
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
    return {**schema, **kinds[0]} if len(kinds) == 1 else {**schema, "anyOf": kinds}


def _success(route: Route, schemas: _Schemas) -> dict[str, Any]:
    if route.response is None:
        return {"description": route.summary}
    content = schemas.content(route.response, "serialization")
    if route.query is not None and "follow" in route.query.model_fields:
        content["text/event-stream"] = {"schema": {"type": "string", "description": "Each event is a ServerMessage."}}
    return {"description": route.summary, "content": content}


def _refusals(route: Route, schemas: _Schemas) -> dict[str, Any]:
    codes = set(_OF_ALL)
    if not route.public:
        codes |= {*_OF_CALLERS, "404"}
    elif route.method != "GET":  # another origin, or an expired code
        codes |= {"403", "404"}
    if route.method == "POST":
        codes |= set(_OF_WRITES)
    content = schemas.content(ErrorAnswer, "serialization")
    return {code: {"description": _ERRORS[code], "content": content} for code in sorted(codes)}


def _without_titles(schema: Any) -> Any:
    """Removes the titles that pydantic generates; keeps properties that are named `title`."""
    match schema:
        case dict():
            return {
                key: {name: _without_titles(part) for name, part in value.items()}
                if key == "properties"
                else _without_titles(value)
                for key, value in schema.items()
                if key != "title" or not isinstance(value, str)
            }
        case list():
            return [_without_titles(part) for part in schema]
        case _:
            return schema


def _version() -> str:
    try:
        return version("tarsy-operator")
    except PackageNotFoundError:
        return "0"
