"""Generates the reference of the kinds: a page for each, with every field of spec and status.

Decision: it is made of the CustomResourceDefinition, which is what the API server holds people to, so a field, limit or
rule that is described is one that is enforced, and none is forgotten.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hack.site.text import code, line, page, table

from tarsy.resources.crd import crd
from tarsy.resources.meta import AnyResource
from tarsy.resources.schema import HINTS, NAME
from tarsy.resources.v1alpha1 import KINDS

Schema = Mapping[str, Any]
_COLUMNS: Final = ("field", "type", "default", "limits", "what it is")
_WIDE: Final = "---\nhide: [toc]\n---"
_UNCHANGED: Final = re.compile(r"^(\w+) cannot be changed")


def pages() -> dict[str, str]:
    """Returns the pages, by path below docs/."""
    found = {f"reference/kinds/{kind.KIND.lower()}.md": _page(kind) for kind in KINDS.values()}
    rows = [
        (f"[{kind.KIND}]({kind.KIND.lower()}.md)", _short(kind), line(kind.__doc__ or "")) for kind in KINDS.values()
    ]
    text = (
        "Group `tarsy.dev`, version `v1alpha1`, category `tarsy`, all namespaced. These pages are generated from the "
        "models of the CustomResourceDefinitions."
    )
    found["reference/kinds/index.md"] = page(("# The kinds", text, table(("kind", "short", "description"), rows)))
    return found


def _page(kind: type[AnyResource]) -> str:
    version = crd(kind)["spec"]["versions"][0]
    whole = version["schema"]["openAPIV3Schema"]
    parts = [_WIDE, f"# {kind.KIND}", line(kind.__doc__ or ""), f"`kubectl get {kind.PLURAL}`, or {_short(kind)}."]
    if paths := [code(field["jsonPath"].lstrip(".")) for field in version.get("selectableFields", ())]:
        parts.append(f"Field selectors: {', '.join(paths)}.")
    for name in ("spec", "status"):
        schema = whole["properties"][name]
        parts += [
            f"## {name.capitalize()}",
            line(schema.get("description", "")),
            table(_COLUMNS, _fields(schema, name)),
        ]
        rules = [*_rules(schema, name), *(_rules({**whole, "properties": {}}, "") if name == "spec" else ())]
        if rules:
            parts += ["### Rules" if name == "spec" else "### Rules of the status", "\n".join(rules)]
    columns = (
        (column["name"].upper(), "yes" if column.get("priority") else "", line(column.get("description", "")))
        for column in version["additionalPrinterColumns"]
    )
    parts += ["## Columns of kubectl get", table(("column", "only with -o wide", "what it is"), columns)]
    return page(parts)


def _short(kind: type[AnyResource]) -> str:
    return ", ".join(code(name) for name in kind.SHORT_NAMES)


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, str, str, str, str]]:
    required = schema.get("required", ())
    fixed = _fixed(schema)
    for name, field in schema.get("properties", {}).items():
        where = f"{path}.{name}"
        limits = [*(["required"] if name in required else []), *dict.fromkeys(_limits(field))]
        if name in fixed:
            limits.append("cannot be changed")
        default = code(field["default"]) if "default" in field else ""
        yield code(where), _type(field), default, "; ".join(limits), line(field.get("description", ""))
        yield from _fields(field, where)
        if items := field.get("items"):
            yield from _fields(items, f"{where}[]")
        if isinstance(values := field.get("additionalProperties"), Mapping):
            yield from _fields(values, f"{where}.*")


def _fixed(schema: Schema) -> frozenset[str]:
    """The fields that rules of the object compare with the old one."""
    found = (_UNCHANGED.match(rule["message"]) for rule in schema.get("x-kubernetes-validations", ()))
    return frozenset(one[1] for one in found if one)


def _rules(schema: Schema, path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- `{path or 'the object'}`: {line(rule['message'])}"
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
    if items := schema.get("items"):
        yield from _rules(items, f"{path}[]")
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        yield from _rules(values, f"{path}.*")


def _type(field: Schema) -> str:
    kind = str(field.get("format") or field["type"])
    if items := field.get("items"):
        how = {"map": f" by {', '.join(field.get('x-kubernetes-list-map-keys', ()))}", "set": ", each once"}
        return f"list of {_type(items)}{how.get(field.get('x-kubernetes-list-type', ''), '')}"
    if isinstance(values := field.get("additionalProperties"), Mapping):
        return f"map of {_type(values)}"
    return kind


def _limits(field: Schema) -> Iterator[str]:
    if "enum" in field:
        yield "one of " + ", ".join(map(code, field["enum"]))
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " keys"),
    ):
        if (said := _range(field.get(low), field.get(high))) is not None:
            yield said + unit
    if pattern := field.get("pattern"):
        yield _pattern(pattern)
    if (items := field.get("items")) and not items.get("properties") and (each := "; ".join(_limits(items))):
        yield f"each: {each}"
    if isinstance(values := field.get("additionalProperties"), Mapping) and (each := "; ".join(_limits(values))):
        yield f"each: {each}"


def _pattern(pattern: str) -> str:
    if pattern == NAME:
        return "a Kubernetes name"
    return HINTS[pattern].removeprefix("must be ") if pattern in HINTS else code(pattern)


def _range(low: float | None, high: float | None) -> str | None:
    if low is None and high is None:
        return None
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None else f"{low} to {high}"
