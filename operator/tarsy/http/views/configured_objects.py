"""Models of the configuration as a whole: each object with its health, what it uses and what uses it.

Decision: health is derived from conditions, by the rules that make warnings. Of an address only scheme,
host and port are told: paths and queries may hold credentials. Callers see kinds that they may list, so whole objects.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE, ConditionView
from tarsy.plan.check import references
from tarsy.resources.health import Health, address_of, health_of
from tarsy.resources.meta import AnyResource, Condition
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1 import (
    Agent,
    AlertRoute,
    AlertSchedule,
    Chain,
    EvalSuite,
    InvestigationDefaults,
    InvestigationQuota,
    LLMProvider,
    MCPServer,
    Skill,
)


class ObjectRefView(View):
    """A reference to a configuration object."""

    kind: str
    namespace: str
    name: str


class UsedObject(ObjectRefView):
    """An object that another one names."""

    found: bool | None = Field(description="Whether it exists. Null where the caller may not list its kind there.")


class TimedCondition(ConditionView):
    """A condition, with the time at which its status last changed."""

    since: datetime | None


class ConfigurationItem(ObjectRefView):
    """A configuration object."""

    uid: str
    health: Health = Field(
        description="NotReady: it cannot be used. Degraded: it can, and another condition reports a problem. Unknown: "
        "it was not checked yet."
    )
    reason: str = Field(description="Reason of the condition that decides; empty without a condition.")
    message: str
    since: datetime | None = Field(description="Time of the last change of that condition's status.")
    conditions: tuple[TimedCondition, ...]
    summary: str = Field(description="The main fields of its spec, in a few words.")
    address: str | None = Field(description="Scheme, host and port that it is reached by.")
    last_error: str | None = Field(description="Last error of a health check.")
    tools: tuple[str, ...] = Field(description="Names of the first tools of an MCPServer.")
    created_at: datetime | None
    uses: tuple[UsedObject, ...] = Field(description="Objects that it names.")
    used_by: tuple[ObjectRefView, ...] = Field(description="Objects that name it, of those that the caller may list.")


class ConfigurationList(View):
    """Configuration objects, those with problems first."""

    items: tuple[ConfigurationItem, ...]
    kinds: tuple[str, ...] = Field(description="Kinds that the caller may list.")
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


_Key = tuple[str, str, str]


def configuration_items(
    objects: Iterable[Mapping[str, Any]], kinds: Sequence[str], library: str
) -> list[ConfigurationItem]:
    """Converts raw objects, with the references between them.

    Args:
        objects: of the kinds that the caller may list.
        kinds: those kinds; what is missing of them in a listed namespace does not exist.
        library: namespace of the library.
    """
    raws = list(objects)
    parsed: dict[_Key, AnyResource | None] = {}
    errors: dict[_Key, str] = {}
    for raw in raws:
        key = _key_of(raw)
        try:
            parsed[key] = parse_object(raw)
        except InvalidResource as error:
            parsed[key], errors[key] = None, str(error)[:1024]
    namespaces = {key[1] for key in parsed}
    uses = {key: _uses(resource, parsed, library) for key, resource in parsed.items() if resource is not None}
    used_by: defaultdict[_Key, list[_Key]] = defaultdict(list)
    for key, named in uses.items():
        for one in named:
            used_by[one].append(key)

    def found(key: _Key) -> bool | None:
        if key in parsed:
            return True
        return False if key[0] in kinds and key[1] in namespaces else None

    items = []
    for raw in raws:
        key = _key_of(raw)
        health = _health(parsed[key], errors.get(key, ""))
        items.append(_item(raw, parsed[key], health, [(one, found(one)) for one in uses.get(key, ())], used_by[key]))
    return items


def _item(
    raw: Mapping[str, Any],
    resource: AnyResource | None,
    judged: tuple[Health, Condition | None],
    uses: Sequence[tuple[_Key, bool | None]],
    used_by: Sequence[_Key],
) -> ConfigurationItem:
    kind, namespace, name = _key_of(raw)
    health, decides = judged
    told = resource.status.conditions if resource is not None else ()
    return ConfigurationItem(
        kind=kind,
        namespace=namespace,
        name=name,
        uid=raw["metadata"].get("uid", ""),
        health=health,
        reason=decides.reason if decides else "",
        message=decides.message if decides else "",
        since=decides.last_transition_time if decides else None,
        conditions=tuple(
            TimedCondition(
                type=one.type,
                status=one.status,
                reason=one.reason,
                message=one.message,
                since=one.last_transition_time,
            )
            for one in told
        ),
        summary=_summary(resource),
        address=address_of(resource),
        last_error=resource.status.last_error if isinstance(resource, MCPServer) else None,
        tools=resource.status.tools if isinstance(resource, MCPServer) else (),
        created_at=raw["metadata"].get("creationTimestamp"),
        uses=tuple(UsedObject(kind=k, namespace=at, name=n, found=there) for (k, at, n), there in sorted(uses)),
        used_by=tuple(ObjectRefView(kind=k, namespace=at, name=n) for k, at, n in sorted(used_by)),
    )


def _health(resource: AnyResource | None, error: str) -> tuple[Health, Condition | None]:
    """Returns the health of an object with the condition that decides it; `error` is that of an invalid object."""
    if resource is None:
        return "NotReady", Condition(type="Ready", status="False", reason="Invalid", message=error)
    return health_of(resource.status.conditions)


def _uses(resource: AnyResource, there: Mapping[_Key, AnyResource | None], library: str) -> list[_Key]:
    """Returns the objects that an object names, by the rules by which runs find them."""
    home = resource.metadata.namespace
    if isinstance(resource, AlertRoute | AlertSchedule):
        alert = resource.spec if isinstance(resource, AlertRoute) else resource.spec.template
        name = alert.chain_ref.name if alert.chain_ref is not None else None
        return _chains(name, alert.alert_type, home, there, library)
    named = set(references(resource))
    if isinstance(resource, Agent):
        named |= {(Skill.KIND, home, one.name) for one in resource.spec.skills or ()}
    if isinstance(resource, InvestigationDefaults) and resource.spec.default_chain is not None:
        named |= set(_chains(resource.spec.default_chain, None, home, there, library))
    return sorted(named)


def _chains(
    name: str | None, alert_type: str | None, home: str, there: Mapping[_Key, AnyResource | None], library: str
) -> list[_Key]:
    """Returns the chain of a name, else the chains of an alert type: those of the namespace, else of the library."""
    for place in dict.fromkeys((home, library)):
        if name is not None and (Chain.KIND, place, name) in there:
            return [(Chain.KIND, place, name)]
        takers = [
            key
            for key, one in there.items()
            if name is None and isinstance(one, Chain) and key[1] == place and alert_type in one.spec.alert_types
        ]
        if takers:
            return sorted(takers)
    return [] if name is None else [(Chain.KIND, home, name)]


def _summary(resource: AnyResource | None) -> str:
    match resource:
        case Chain():
            stages = " → ".join(stage.name for stage in resource.spec.stages)
            return f"{', '.join(resource.spec.alert_types) or 'no alert type'}: {stages}"
        case MCPServer():
            count = resource.status.tool_count
            tools = "tools not known yet" if count is None else f"{count} tools"
            return f"{resource.spec.transport.type}, {resource.spec.tool_policy or 'ReadOnly'}, {tools}"
        case LLMProvider():
            return f"{resource.spec.type} {resource.spec.model}"
        case AlertSchedule():
            state = "suspended, " if resource.spec.suspend else ""
            return f"{state}{resource.spec.schedule} {resource.spec.time_zone}: {resource.spec.template.alert_type}"
        case AlertRoute():
            return f"{resource.spec.alert_type or 'alert type of the sender'}"
        case InvestigationQuota():
            return f"a limit for each {resource.spec.period.lower()}, then {resource.spec.on_exceeded}"
        case EvalSuite():
            return f"{len(resource.spec.cases)} cases, last verdict {resource.status.last_verdict or 'none'}"
        case Agent() | Skill():
            return resource.spec.description or ""
        case _:
            return ""


def _key_of(raw: Mapping[str, Any]) -> _Key:
    return raw["kind"], raw["metadata"].get("namespace", ""), raw["metadata"]["name"]
