"""Names the objects that a call changes, as the MCPServer declares.

Decision: a name that is not certain is none. A manifest is read as Kubernetes reads YAML, and refused where two readers
could disagree: keys twice, aliases, merge keys, values that are no text where a name is expected. An argument beside it
that names another object (a `namespace` that a server puts before that of the manifest) is refused too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tarsy.plan.approval_expressions import ARGUMENTS, NotEvaluated, evaluate
from tarsy.plan.model import ApprovalPlan, ReachPlan, TargetRule
from tarsy.record.approvals.approval_targets import MAX_OBJECTS, TargetName

_KEYS = frozenset({"apiVersion", "kind", "namespace", "name"})
_FORMS = {
    "apiVersion": re.compile(r"[a-z0-9]([a-z0-9.-]{0,200})(/v[a-z0-9]{1,62})?"),
    "kind": re.compile(r"[A-Z][A-Za-z0-9]{0,62}"),
    "namespace": re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?"),
    "name": re.compile(r"(?!\.{1,2}$)[A-Za-z0-9]([-A-Za-z0-9_.:]{0,252})"),
}


class TargetsUnknown(Exception):
    """The objects that a call changes are not known; the text says why, and what would help."""


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """An object that a call changes, with the change: a JSON merge patch, or the `manifest` that is applied."""

    name: TargetName
    change: Mapping[str, Any] | None = None
    manifest: Mapping[str, Any] | None = None


def as_bound(reach: ReachPlan | None, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the arguments with the namespace that the toolbox sets in calls of a bound server."""
    if reach is None or reach.namespace is None or reach.bound_by != "Argument":
        return arguments
    empty = {name: reach.namespace for name in reach.arguments if arguments.get(name) in (None, "", [])}
    return {**arguments, **empty}


def declared_targets(rules: ApprovalPlan | None, tool: str, arguments: Mapping[str, Any]) -> list[DeclaredTarget]:
    """Returns the objects that a call changes, at least one.

    Args:
        rules: of the server.
        tool: name of the tool.
        arguments: as they would be sent.

    Raises:
        TargetsUnknown: they are not known for certain.
    """
    rule = rules.target_rule(tool) if rules is not None else None
    if rule is None:
        raise TargetsUnknown("the MCPServer does not declare the objects that this tool changes")
    try:
        found = _from_manifest(rule.manifest, arguments) if rule.manifest else _from_object(rule, arguments)
    except NotEvaluated as error:
        raise TargetsUnknown(f"the objects that it changes cannot be told from its arguments: {error}") from error
    if not found:
        raise TargetsUnknown("its arguments name no object")
    if len(found) > MAX_OBJECTS:
        raise TargetsUnknown(f"it changes more than {MAX_OBJECTS} objects; make calls that change fewer")
    if len({one.name for one in found}) != len(found):
        raise TargetsUnknown("it names an object twice")
    return found


def _from_object(rule: TargetRule, arguments: Mapping[str, Any]) -> list[DeclaredTarget]:
    value = evaluate(rule.object or "", {ARGUMENTS: arguments})
    entries = value if isinstance(value, list) else [value]
    change = evaluate(rule.change, {ARGUMENTS: arguments}) if rule.change is not None else None
    if change is not None and (not isinstance(change, dict) or len(entries) != 1):
        raise NotEvaluated("its change is not a map for one object")
    return [DeclaredTarget(_name(entry), change) for entry in entries]


def _name(entry: Any) -> TargetName:
    if not isinstance(entry, Mapping) or set(entry) - _KEYS or {"apiVersion", "kind", "name"} - set(entry):
        raise NotEvaluated("an object needs apiVersion, kind and name, may have a namespace, and nothing else")
    for key, form in _FORMS.items():
        value = entry.get(key, "")
        if not isinstance(value, str) or not form.fullmatch(value):
            raise NotEvaluated(f"{key} of an object is not valid in Kubernetes")
    return TargetName(entry["apiVersion"], entry["kind"], entry.get("namespace", ""), entry["name"])


class _OneReading(yaml.SafeLoader):
    """A loader without timestamps that refuses what readers of YAML take differently."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("it has an alias")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value if isinstance(key, yaml.ScalarNode) else None for key, _ in node.value]
        if None in keys or "<<" in keys or len(set(keys)) != len(keys):
            raise yaml.YAMLError("a key occurs twice, is not a string, or merges another map")
        return super().construct_mapping(node, deep)


_OneReading.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def manifests_in(text: str) -> list[Any]:
    """Reads the documents of a manifest; empty ones are left out.

    Raises:
        ValueError: it is no YAML, or readers could disagree about it.
    """
    try:
        return [one for one in yaml.load_all(text, _OneReading) if one is not None]
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise ValueError(str(error).partition("\n")[0]) from error


def _from_manifest(argument: str, arguments: Mapping[str, Any]) -> list[DeclaredTarget]:
    text = arguments.get(argument)
    if isinstance(text, Mapping):
        documents: list[Any] = [text]
    elif isinstance(text, str):
        try:
            documents = manifests_in(text)
        except ValueError as error:
            raise NotEvaluated(f"{argument} is no manifest with one reading: {error}") from error
    else:
        raise NotEvaluated(f"{argument} contains no manifest")
    found = [_in_manifest(document) for document in documents]
    beside = {key: arguments[key] for key in _KEYS - {argument} if arguments.get(key) not in (None, "")}
    for target in found:
        for key, value in beside.items():
            if value != _parts(target.name)[key]:
                raise NotEvaluated(f"the argument {key} and {argument} do not name the same object")
    return found


def _parts(name: TargetName) -> Mapping[str, str]:
    return {"apiVersion": name.api_version, "kind": name.kind, "namespace": name.namespace, "name": name.name}


def _in_manifest(document: Any) -> DeclaredTarget:
    meta = document.get("metadata") if isinstance(document, Mapping) else None
    if not isinstance(meta, Mapping) or "items" in document:
        raise NotEvaluated("a document of the manifest is no single object with metadata")
    parts = {"apiVersion": document.get("apiVersion"), "kind": document.get("kind"), "name": meta.get("name")}
    if meta.get("namespace") is not None:
        parts["namespace"] = meta["namespace"]
    return DeclaredTarget(_name(parts), manifest=document)
