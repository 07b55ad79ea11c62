"""Tests that all routes are described by OpenAPI, bounded and authorized."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tarsy.http.models import Body, Query, View
from tarsy.http.openapi import document, openapi_route
from tarsy.http.route import Route
from tarsy.http.table import all_routes

PUBLIC = {"getOpenapi", "signOut", "signInByCode"}
ROUTES = {route.operation: route for route in all_routes()}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The document of all routes."""
    return document(all_routes())


def _operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_route_is_described_once(described: dict[str, Any]) -> None:
    named = [operation["operationId"] for _, _, operation in _operations(described)]
    assert sorted(named) == sorted(ROUTES) and len(named) == len(all_routes())


def test_every_route_but_the_document_and_the_page_s_door_asks_who_may() -> None:
    assert {name for name, route in ROUTES.items() if route.public} == PUBLIC
    unasked = {name for name, route in ROUTES.items() if route.permission is None and not route.public}
    # Each subscription is asked about, and each namespace; a session shows callers themselves.
    assert unasked == {"followByWebSocket", "listNamespaces", "signIn", "getSession"}


def test_a_list_always_has_a_limit(described: dict[str, Any]) -> None:
    for _, _, operation in _operations(described):
        if operation["operationId"].startswith("list"):
            limits = {one["name"]: one["schema"] for one in operation["parameters"]}
            assert limits["limit"]["maximum"] <= 2000 and limits["limit"]["minimum"] == 1, operation["operationId"]


def test_every_text_that_may_be_sent_has_a_longest(described: dict[str, Any]) -> None:
    for _, _, operation in _operations(described):
        for parameter in operation["parameters"]:
            schema = parameter["schema"].get("items", parameter["schema"])
            if schema.get("type") == "string" and not {"enum", "format"} & set(schema):
                assert schema["maxLength"] <= 1024 * 4, (operation["operationId"], parameter["name"])
            if parameter["schema"].get("type") == "array":
                assert parameter["schema"]["maxItems"] <= 20


def test_no_parameter_is_ever_null(described: dict[str, Any]) -> None:
    for _, _, operation in _operations(described):
        for parameter in operation["parameters"]:
            assert "null" not in str(parameter["schema"]) and parameter["schema"].get("default", 0) is not None


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    def references(part: Any) -> Iterator[str]:
        match part:
            case dict():
                yield from [part["$ref"]] if isinstance(part.get("$ref"), str) else []
                for value in part.values():
                    yield from references(value)
            case list():
                for value in part:
                    yield from references(value)

    there = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert set(references(described)) <= there


def test_what_a_provider_signed_and_specs_are_in_no_answer(described: dict[str, Any]) -> None:
    fields = {name for schema in described["components"]["schemas"].values() for name in schema.get("properties", ())}
    assert not {"providerState", "spec", "token", "password", "apiKey"} & fields


def test_what_is_written_tells_the_refusals_of_writes_and_what_is_read_does_not(described: dict[str, Any]) -> None:
    for _, method, operation in _operations(described):
        assert ("409" in operation["responses"]) == (method == "post"), operation["operationId"]


class _Twice(View):
    name: str
    title: str


class _Other:
    class _Twice(Body):
        title: str


class _Asked(Query):
    limit: int = 1


def _route(method: str, operation: str, **more: Any) -> Route:
    async def handler(_: object) -> BaseModel:
        raise NotImplementedError

    return Route(method=method, path=f"/{operation}", operation=operation, summary="Does it", handler=handler, **more)


def test_models_of_one_name_are_told_apart_and_a_field_called_title_stays() -> None:
    made = document([_route("POST", "twice", body=_Other._Twice, response=_Twice, query=_Asked)])
    operation = made["paths"]["/twice"]["post"]
    read = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    told = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    assert read != told
    schemas = {f"#/components/schemas/{name}": schema for name, schema in made["components"]["schemas"].items()}
    assert set(schemas[read]["properties"]) == {"title"} and set(schemas[told]["properties"]) == {"name", "title"}
    assert not any("_Asked" in name for name in schemas)


async def test_the_document_is_made_once_and_describes_its_own_route() -> None:
    route = openapi_route([_route("GET", "other", response=_Twice)])
    first, second = [await route.handler(None) for _ in range(2)]  # type: ignore[arg-type]
    assert first.body == second.body and b'"getOpenapi"' in first.body  # type: ignore[attr-defined]
