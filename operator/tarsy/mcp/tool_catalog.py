"""Selects the tools of a server that an agent may call.

The lists of the MCPServer declare the effect of its tools; annotations of the server count only for tools that are not
listed, and only with `trustAnnotations`. With `toolPolicy: ReadOnly`, a tool that is not known to be read-only is
withheld; whether calls of others need the approval of people, the gate of the engine asks. A digest of name,
description, parameters and annotations identifies a tool over time, so a server that changes a tool during a run is
detected.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types

from tarsy.mcp.namespace_binding import ENFORCED, can_be_held, declares
from tarsy.plan.model import ReachPlan, ServerPlan
from tarsy.plan.policy import ToolPolicy, names, waits_for_people
from tarsy.record.messages import Access, Refusal, ToolDefinition
from tarsy.record.text import without_invisible

_NAME = re.compile(r"[\w./-]{1,128}", re.ASCII)
_DIGEST = 32
_DEEPEST = 50
"""Maximum depth at which the keys of a schema are sorted."""
TOOL_NOT_ALLOWED = "ToolNotAllowed"
POLICY = "ToolPolicy"
CHANGED = "ToolChanged"
OUT_OF_REACH = "ToolOutOfReach"
NOT_ACCEPTED = "ToolNotAccepted"


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server lists it: the full digest of its definition, and the definition as JSON."""

    digest: str
    definition: str


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of one server for one agent.

    `definitions` are the tools that it may call, sorted by name; `withheld` contains the reason for each other tool.
    `access`, `repeatable` and `digests` cover all tools; `bindable` are those whose calls can be restricted to a
    namespace, and `gated` those whose calls need the approval of people.
    """

    definitions: tuple[ToolDefinition, ...] = ()
    withheld: Mapping[str, Refusal] = field(default_factory=dict)
    access: Mapping[str, Access] = field(default_factory=dict)
    repeatable: frozenset[str] = frozenset()
    digests: Mapping[str, str] = field(default_factory=dict)
    bindable: frozenset[str] = frozenset()
    gated: frozenset[str] = frozenset()


def offer(plan: ServerPlan, tools: Sequence[types.Tool]) -> Offer:
    """Selects the tools of a server for an agent.

    Tools with invalid names are dropped, because names become part of prompts.

    Args:
        plan: The server, with the tools that the agent may use.
        tools: All tools that the server lists.
    """
    named = {tool.name: tool for tool in tools if _NAME.fullmatch(tool.name)}
    digests = digests_of(tools)
    access = {name: _access(plan, tool) for name, tool in named.items()}
    withheld = {name: why for name in sorted(named) if (why := _refusal(plan, named[name], access[name])) is not None}
    return Offer(
        definitions=tuple(
            ToolDefinition(
                f"{plan.name}.{name}",
                without_invisible(named[name].description or "").text,
                _schema(named[name].input_schema),
            )
            for name in sorted(named)
            if name not in withheld
        ),
        withheld=withheld,
        access=access,
        repeatable=frozenset(name for name, tool in named.items() if _repeatable(plan, tool, access[name])),
        digests=digests,
        bindable=frozenset(name for name, tool in named.items() if can_be_held(plan.reach or ReachPlan(), tool)),
        gated=frozenset(name for name in named if _is_gated(plan, name, access[name])),
    )


def digests_of(tools: Sequence[types.Tool]) -> dict[str, str]:
    """Returns the digest of each tool by name; of equal names, the last one counts."""
    return {tool.name: _digest(tool) for tool in sorted(tools, key=lambda t: t.name) if _NAME.fullmatch(tool.name)}


def listed_tools(tools: Sequence[types.Tool], redact: Callable[[str], str] = str) -> dict[str, ListedTool]:
    """Returns each tool by name, for those who accept it; of equal names, the last one counts.

    Args:
        tools: All tools that the server lists.
        redact: Replaces secrets of the connection in the text to read.
    """
    named = {tool.name: tool for tool in sorted(tools, key=lambda t: t.name) if _NAME.fullmatch(tool.name)}
    return {
        name: ListedTool(full_digest(tool), redact(json.dumps(_seen(tool), sort_keys=True)))
        for name, tool in named.items()
    }


def list_hash(digests: Mapping[str, str]) -> str:
    """Returns the hash of a list of tools, for `status.toolsHash` of an MCPServer."""
    lines = "".join(f"{name} {digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


def held_to_pin(found: Offer, kept: Collection[str], server: str) -> Offer:
    """Withholds the tools that have changed since the run first saw them.

    Args:
        found: The tools of the server.
        kept: Names of the unchanged tools.
        server: Name of the server.
    """
    sentence = (
        f"The tool {{name!r}} of server {server!r} was not called: it is not what it was when this investigation "
        "began, and is not used in it any more. Use another, or conclude without it."
    )
    changed = {
        name: Refusal(CHANGED, sentence.format(name=name))
        for name in found.digests
        if name not in kept and name not in found.withheld
    }
    return Offer(
        tuple(tool for tool in found.definitions if tool.name.removeprefix(f"{server}.") not in changed),
        {**found.withheld, **changed},
        found.access,
        found.repeatable,
        found.digests,
        found.bindable,
        found.gated,
    )


def nothing_offered(plan: ServerPlan, found: Offer) -> str | None:
    """Explains why an agent has no tool of a server, with the remedy; None if it has one."""
    if found.definitions or not (found.digests or plan.selected):
        return None
    where = f"MCPServer {plan.ref.namespace}/{plan.ref.name}"
    reasons = {refusal.reason for refusal in found.withheld.values()}
    if OUT_OF_REACH in reasons and plan.reach is not None:
        return (
            f"none of its tools ({len(found.digests)}) can be restricted to namespace {plan.reach.namespace}: "
            f"list their namespace arguments in spec.reach.namespaceArguments of {where}, or list tools that access no "
            "namespace in spec.reach.clusterTools there, or lift the restriction for runs of this namespace in "
            "spec.reach.unboundNamespaces"
        )
    if NOT_ACCEPTED in reasons:
        return (
            f"its tools are new or have changed, and nobody has accepted them (spec.pin of {where}): read them with "
            f"`kubectl tarsy tools {plan.ref.name} -n {plan.ref.namespace}`, and accept them"
        )
    if POLICY not in reasons:
        return f"it offers none of the tools that are allowed for this agent ({len(found.digests)} others)"
    return (
        f"none of its tools ({len(found.digests)}) is known to be read-only, and toolPolicy is ReadOnly: list the "
        f"read-only ones in spec.tools.readOnly of {where}, or set spec.trustAnnotations: true there to trust the "
        "annotations of the server, or set toolPolicy: All there and on the Agent"
    )


def may_have(plan: ServerPlan, tool: str) -> bool:
    """Returns whether an agent may have a tool, judged without the server's annotations."""
    if not _is_chosen(plan, tool) or plan.policy is not ToolPolicy.READ_ONLY:
        return _is_chosen(plan, tool)
    return not names(plan.destructive, tool) and (plan.trust_annotations or names(plan.read_only, tool))


def _is_gated(plan: ServerPlan, tool: str, access: Access) -> bool:
    return waits_for_people(plan.policy, plan.destructive, tool, reads=access is Access.READ_ONLY)


def _is_chosen(plan: ServerPlan, tool: str) -> bool:
    """Returns whether the agent's selection and the lists of the server permit a tool."""
    chosen = not plan.selected or tool in plan.selected
    return chosen and (not plan.allow or names(plan.allow, tool)) and not names(plan.deny, tool)


def _access(plan: ServerPlan, tool: types.Tool) -> Access:
    """Returns the effect of a tool: from the lists, the stricter first; then from annotations, if they are trusted."""
    if names(plan.destructive, tool.name):
        return Access.DESTRUCTIVE
    if names(plan.read_only, tool.name):
        return Access.READ_ONLY
    hints = tool.annotations
    if not plan.trust_annotations or hints is None:
        return Access.UNKNOWN
    if hints.read_only_hint and not hints.destructive_hint:
        return Access.READ_ONLY
    if hints.read_only_hint is None and hints.destructive_hint is None:
        return Access.UNKNOWN
    return Access.CHANGES if hints.destructive_hint is False else Access.DESTRUCTIVE


def _repeatable(plan: ServerPlan, tool: types.Tool, access: Access) -> bool:
    if access is Access.READ_ONLY or names(plan.repeatable, tool.name):
        return True
    return bool(plan.trust_annotations and tool.annotations and tool.annotations.idempotent_hint)


def _refusal(plan: ServerPlan, tool: types.Tool, access: Access) -> Refusal | None:
    name = tool.name
    if not _is_chosen(plan, name):
        return Refusal(TOOL_NOT_ALLOWED, f"The tool {name!r} of server {plan.name!r} is not allowed for this agent.")
    if plan.policy is ToolPolicy.READ_ONLY and access is not Access.READ_ONLY:
        known = "it may change something" if access is Access.UNKNOWN else "it changes something"
        return Refusal(
            POLICY,
            f"The tool {name!r} of server {plan.name!r} was not called: {known}, and this agent may only read "
            "(toolPolicy: ReadOnly). Say in your answer what you would do with it; do not ask for it again.",
        )
    if plan.reach is not None and plan.reach.namespace is not None and not can_be_held(plan.reach, tool):
        return Refusal(
            OUT_OF_REACH,
            f"The tool {name!r} of server {plan.name!r} was not called: this investigation reaches namespace "
            f"{plan.reach.namespace} only, and calls of this tool cannot be held to it.",
        )
    if plan.pin is not None and not plan.pin.admits(name, full_digest(tool)):
        return Refusal(
            NOT_ACCEPTED,
            f"The tool {name!r} of server {plan.name!r} was not called: its definition is new or has changed, and "
            "nobody has accepted it (spec.pin). Use another, or conclude without it.",
        )
    return None


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Sorts the keys of a schema, so that another order of the server does not invalidate prompt caches."""
    ordered: dict[str, Any] = _ordered({"type": "object", "properties": {}} | schema, _DEEPEST)
    return ordered


def _ordered(value: Any, depth: int) -> Any:
    """Sorts the keys of JSON, with required properties before the others; removes invisible characters of texts."""
    if not depth:
        return value
    if isinstance(value, list):
        return [_ordered(item, depth - 1) for item in value]
    if isinstance(value, str):
        return without_invisible(value).text
    if not isinstance(value, dict):
        return value
    made = {key: _ordered(value[key], depth - 1) for key in sorted(value)}
    properties, required = made.get("properties"), made.get("required")
    if isinstance(properties, dict) and isinstance(required, list):
        first = [name for name in required if isinstance(name, str) and name in properties]
        made["properties"] = {name: properties[name] for name in first} | properties
    return made


def full_digest(tool: types.Tool) -> str:
    """Returns the SHA-256 of a tool's definition, in hex; its first 32 digits tell tools apart within a run."""
    return hashlib.sha256(json.dumps(_seen(tool), sort_keys=True).encode()).hexdigest()


def _seen(tool: types.Tool) -> list[Any]:
    hints = tool.annotations.model_dump(mode="json", exclude_none=True) if tool.annotations else {}
    seen = [tool.name, tool.description or "", tool.input_schema, hints]
    if declares(tool):
        seen.append(ENFORCED)
    return seen


def _digest(tool: types.Tool) -> str:
    return full_digest(tool)[:_DIGEST]
