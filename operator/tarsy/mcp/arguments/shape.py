"""Finds the types that a tool's JSON schema allows for a value.

Schemas come from outside: references stay inside the document, and at most a fixed number of alternatives is looked
at. What a schema does not say stays open.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_ALTERNATIVES = 64
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Shape:
    """One node of a schema."""

    def __init__(self, schema: object, root: object = None) -> None:
        self._root = schema if root is None else root
        self._nodes = list(_alternatives(schema, self._root))
        self.types = frozenset(kind for node in self._nodes for kind in _kinds(node))
        self._shapes: dict[str, Shape] = {}
        self._items: Shape | None = None

    @property
    def is_text(self) -> bool:
        """Whether nothing but text (or null) will do."""
        return "string" in self.types and self.types <= {"string", "null"}

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties of an object, from all alternatives."""
        found: dict[str, Any] = {}
        for node in self._nodes:
            if isinstance(named := node.get("properties"), dict):
                found = named | found
        return found

    def property(self, name: str) -> "Shape":
        """The shape of the property `name`; an open one for what the schema does not name."""
        if name not in self._shapes:
            self._shapes[name] = Shape(self.properties.get(name), self._root)
        return self._shapes[name]

    def items(self) -> "Shape":
        """The shape of a list's items."""
        if self._items is None:
            found = next((node["items"] for node in self._nodes if isinstance(node.get("items"), dict)), None)
            self._items = Shape(found, self._root)
        return self._items


def _alternatives(schema: object, root: object) -> Iterator[dict[str, Any]]:
    queue = [schema]
    for _ in range(_ALTERNATIVES):
        if not queue:
            return
        node = queue.pop(0)
        if not isinstance(node, dict):
            continue
        yield node
        if isinstance(reference := node.get("$ref"), str):
            queue.append(_follow(reference, root))
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(branches := node.get(word), list):
                queue += branches[:_ALTERNATIVES]


def _follow(reference: str, root: object) -> object:
    if not reference.startswith("#"):
        return None
    node = root
    for part in reference[1:].split("/")[1:_ALTERNATIVES]:
        if not isinstance(node, dict):
            return None
        node = node.get(part.replace("~1", "/").replace("~0", "~"))
    return node


def _kinds(node: Mapping[str, Any]) -> Iterator[str]:
    kind = node.get("type")
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, list):
        yield from (part for part in kind if isinstance(part, str))
    else:
        values = node.get("enum")
        listed = values if isinstance(values, list) else []
        known = [*listed, node["const"]] if "const" in node else listed
        yield from (_TYPES[type(value)] for value in known if type(value) in _TYPES)
