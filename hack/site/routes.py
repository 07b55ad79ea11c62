"""Generates the reference of the HTTP API from the operator's OpenAPI document."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hack.site.text import code, line, page, table

from tarsy.http.live.messages import ClientAction, ServerMessage
from tarsy.http.openapi import document
from tarsy.http.table import all_routes

Schema = Mapping[str, Any]
_HEAD: Final = """\
# HTTP API

All paths are below `{server}` and need a bearer token of the cluster. The operator serves the OpenAPI document at
`{server}/openapi.json`. Each route lists the right that it needs in the namespace of its path; a SubjectAccessReview
checks it for the caller. The Kubernetes API server also serves the namespaced paths that read an investigation
(timeline, events and trace), below `/apis/record.tarsy.dev/v1alpha1`.
"""


def pages() -> dict[str, str]:
    """Returns the page, by path below docs/."""
    return {"reference/http.md": _page()}


def _page() -> str:
    """Returns all operations, then the models of their requests and responses."""
    routes = all_routes()
    api = document(routes, (ServerMessage, ClientAction))
    parts = [_HEAD.format(server=api["servers"][0]["url"])]
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method.upper(), path, operation)
    parts.append("## Models")
    for name, schema in api["components"]["schemas"].items():
        parts += _model(name, schema)
    return page(parts)


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"## {method} {path} {{: #{operation['operationId'].lower()} }}"
    open_to = "" if operation["security"] else " Open to everybody."
    yield f"{line(operation['summary'])}. {operation.get('description', '')}{open_to}"
    parameters = (
        (
            code(one["name"]),
            one["in"],
            "yes" if one["required"] else "",
            _type(one["schema"]),
            line(one.get("description", "")),
        )
        for one in operation["parameters"]
    )
    yield table(("parameter", "in", "required", "type", "what it is"), parameters)
    if body := operation.get("requestBody"):
        yield f"Body: {_type(body['content']['application/json']['schema'])}."
    answers = []
    for status, answer in operation["responses"].items():
        kinds = [_type(content["schema"]) for content in answer.get("content", {}).values()]
        if status.startswith(("1", "2")):
            answers.append(f"`{status}`{': ' + ' or '.join(kinds) if kinds else ''}")
        else:
            answers.append(f"`{status}`")
    yield f"Answers: {', '.join(answers)}."


def _model(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name} {{: #{anchor(name)} }}"
    yield line(schema.get("description", ""))
    required = schema.get("required", ())
    fields = (
        (code(field), _type(one), "yes" if field in required else "", line(one.get("description", "")))
        for field, one in schema.get("properties", {}).items()
    )
    yield table(("field", "type", "always", "what it is"), fields) or f"{_type(schema)}."


def anchor(name: str) -> str:
    """Of a model, in the page."""
    return f"model-{name.lower()}"


def _type(schema: Schema) -> str:
    if ref := schema.get("$ref"):
        name = str(ref).rpartition("/")[2]
        return f"[{name}](#{anchor(name)})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return f"map of {_type(values)}"
    kind = str(schema.get("format") or schema.get("type", "any"))
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        kind += f", {low} to {high}"
    if schema.get("default") is not None:
        kind += f"; default {code(schema['default'])}"
    return kind
