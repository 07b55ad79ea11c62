"""Restricts the calls of a tool server to the namespace of the run (`MCPServer.spec.reach`).

Decision: a tool that cannot be restricted is withheld. With `boundBy: Argument`, a tool must have an argument that
names a namespace and no other argument about namespaces; a call must not contain undeclared arguments; and an empty
value, which often means all namespaces, is filled in like a missing one. With `boundBy: Server`, each tool must declare
the restriction in its `_meta`, so that an older server, which ignores the namespace of a request, is not trusted.
"""

import unicodedata
from collections.abc import Iterator
from typing import Any

import mcp_types as types

from tarsy.plan.model import ReachPlan, ServerPlan
from tarsy.plan.policy import names

NAMESPACES = "tarsy.dev/namespaces"
"""Key of `_meta`: in a request, the permitted namespaces (`*`: all); in a tool, `enforced`."""

MCPSERVER = "tarsy.dev/mcpserver"
"""Key of `_meta` in a request: namespace and name of the MCPServer that it is made for."""

ENFORCED = "enforced"
_ALL = "*"
_LARGEST = 10_000


class OutOfReach(Exception):
    """A call exceeds the namespace of the run; the text is for the model."""


def of_request(plan: ServerPlan) -> dict[str, Any]:
    """Returns the `_meta` of requests to a server, which servers with `boundBy: Server` enforce.

    The URL does not identify the owner: another namespace may have an MCPServer with the same URL. So a request also
    names its MCPServer, and the server grants permissions by it.
    """
    if plan.reach is None:
        return {}
    return {NAMESPACES: [plan.reach.namespace or _ALL], MCPSERVER: f"{plan.ref.namespace}/{plan.ref.name}"}


def declares(tool: types.Tool) -> bool:
    """Returns whether a tool declares that it enforces the namespaces of a request."""
    return (tool.meta or {}).get(NAMESPACES) == ENFORCED


def can_be_held(reach: ReachPlan, tool: types.Tool) -> bool:
    """Returns whether all calls of a tool can be restricted to one namespace."""
    if names(reach.cluster_tools, tool.name):
        return True
    if reach.bound_by == "Server":
        return declares(tool)
    properties = _properties(tool.input_schema)
    bound = [name for name in reach.arguments if name in properties]
    others = [name for name in _named_in(tool.input_schema) if _is_about_namespaces(name)]
    return bool(bound) and len(others) == sum(map(_is_about_namespaces, bound))


def hold_to_namespaces(
    plan: ServerPlan, tool: str, schema: dict[str, Any], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Restricts the arguments of a call to the namespace of the run.

    Args:
        plan: The server, as planned.
        tool: Name of the tool on the server.
        schema: Input schema of the tool.
        arguments: Parsed arguments of the model.

    Raises:
        OutOfReach: The arguments name another namespace, or are undeclared and may.
    """
    reach = plan.reach
    if reach is None or reach.namespace is None or reach.bound_by != "Argument":
        return arguments
    properties = _properties(schema)
    held = dict(arguments)
    for name in reach.arguments:
        value = held.get(name)
        if value in (None, "", []):
            held.pop(name, None)
            if name in properties:
                held[name] = [reach.namespace] if _wants_list(properties[name]) else reach.namespace
        elif value != reach.namespace and not (isinstance(value, list) and set(map(str, value)) == {reach.namespace}):
            raise OutOfReach(
                f"{plan.name}.{tool} was not called: in this investigation it reaches namespace {reach.namespace} and "
                f"no other. Leave {name} out, or conclude without what lies elsewhere."
            )
    if names(reach.cluster_tools, tool):
        return held
    free = {name: value for name, value in held.items() if name not in reach.arguments}
    unknown = [name for name in free if name not in properties]
    unknown += [name for name in _keys(free) if _is_about_namespaces(name)]
    if unknown:
        listed = ", ".join(dict.fromkeys(unknown))[:200]
        known = ", ".join(sorted(properties)) or "none"
        raise OutOfReach(f"{plan.name}.{tool} was not called: it takes no {listed}. Its parameters: {known}.")
    return held


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _wants_list(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "array"


def _is_about_namespaces(name: str) -> bool:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "namespace" in folded or folded == "ns"


def _named_in(schema: Any) -> list[str]:
    """Returns the names of all properties in a schema, at any depth; a schema that is too large is never accepted."""
    found: list[str] = []
    for count, part in enumerate(_parts(schema)):
        if count > _LARGEST:
            return [*found, *["namespace"] * (len(found) + 1)]
        if isinstance(part, dict) and isinstance(part.get("properties"), dict):
            found += [str(name) for name in part["properties"]]
    return found


def _keys(value: Any) -> Iterator[str]:
    for part in _parts(value):
        if isinstance(part, dict):
            yield from map(str, part)


def _parts(value: Any) -> Iterator[Any]:
    """Yields a JSON value and all values in it."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
