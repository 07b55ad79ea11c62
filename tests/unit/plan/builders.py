"""Objects for plan tests, written as people write them: the JSON of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import Plan
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import KINDS, Agent, Alert, Chain, InvestigationDefaults, LLMProvider, MCPServer, Skill
from tarsy.resources.v1alpha1.alert import AlertSpec
from tarsy.resources.v1alpha1.common import Budget

TEAM, LIBRARY = "team-a", "library"
OPEN = {"from": "All"}


def _make(kind: str, name: str, namespace: str, spec: Mapping[str, Any]) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "generation": 3}
    return KINDS[kind].model_validate({"kind": kind, "metadata": metadata, "spec": dict(spec)})


def agent(name: str = "triage", namespace: str = TEAM, **spec: Any) -> Agent:
    made: Agent = _make("Agent", name, namespace, {"toolPolicy": "All", **spec})
    return made


def provider(name: str = "model", namespace: str = TEAM, **spec: Any) -> LLMProvider:
    made: LLMProvider = _make("LLMProvider", name, namespace, {"type": "openai", "model": "m", **spec})
    return made


def google(name: str = "gemini", namespace: str = TEAM, **spec: Any) -> LLMProvider:
    """A provider of the type with native tools."""
    return provider(name, namespace, **{"type": "google", "model": "gemini-3-pro", **spec})


def server(name: str = "kube", namespace: str = TEAM, **spec: Any) -> MCPServer:
    transport = {"type": "http", "http": {"url": "http://127.0.0.1:1/mcp"}}
    made: MCPServer = _make("MCPServer", name, namespace, {"transport": transport, "toolPolicy": "All", **spec})
    return made


def skill(name: str = "pod-crashes", namespace: str = TEAM, **spec: Any) -> Skill:
    """A skill with a text of its own, unless `spec` names a ConfigMap."""
    text = {} if "configMapKeyRef" in spec else {"body": f"How to do {name}."}
    made: Skill = _make("Skill", name, namespace, {"description": f"Explains {name}.", **text, **spec})
    return made


def defaults(namespace: str = TEAM, **spec: Any) -> InvestigationDefaults:
    made: InvestigationDefaults = _make("InvestigationDefaults", "default", namespace, spec)
    return made


def chain(name: str = "pods", namespace: str = TEAM, **spec: Any) -> Chain:
    """A chain of one stage with the agent `triage`, for alert type `PodCrash`, on provider `model`."""
    base = {"alertTypes": ["PodCrash"], "llmProvider": "model", "stages": [stage()]}
    merged = {key: value for key, value in (base | spec).items() if value is not None}
    made: Chain = _make("Chain", name, namespace, merged)
    return made


def stage(*agents: str | Mapping[str, Any], name: str = "look", **rest: Any) -> dict[str, Any]:
    slots = [{"name": slot} if isinstance(slot, str) else dict(slot) for slot in agents or ("triage",)]
    return {"name": name, "agents": slots, **rest}


def selected(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def alert(**spec: Any) -> AlertSpec:
    made: Alert = _make("Alert", "a1", TEAM, {"alertType": "PodCrash", "data": "it crashed", **spec})
    return made.spec


def plan_of(
    objects: list[AnyResource],
    what: AlertSpec | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    namespace: str = TEAM,
    budget: Mapping[str, Any] | None = None,
) -> Plan:
    """Selects the chain and resolves the plan, as a controller does."""
    own = (Budget.model_validate(budget), FieldPath("Investigation", namespace, "i1") / "budget") if budget else None
    catalog = ResourceCatalog(objects, namespaces)
    content = what or alert()
    found = select(namespace=namespace, alert=content, catalog=catalog, library_namespace=LIBRARY)
    assert not isinstance(found, NoChain), found.message
    return resolve(
        PlanRequest(
            namespace=namespace, alert=content, chain=found, catalog=catalog, library_namespace=LIBRARY, budget=own
        )
    )
