"""Whatever valid objects there are, resolving gives a plan or PlanInvalid, and checking never fails."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from properties import examples
from tarsy.plan.builtin import runs_on
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references, references
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import Plan
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.plan.scope import admits, lets_in
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import Chain, MCPServer
from unit.plan.builders import (
    LIBRARY,
    TEAM,
    agent,
    alert,
    chain,
    defaults,
    google,
    provider,
    selected,
    server,
    stage,
)

names = st.sampled_from(["triage", "model", "kube", "synthesis-agent"])
places = st.sampled_from([TEAM, LIBRARY])
tools = st.lists(st.sampled_from(["list", "get", "drop"]), unique=True, max_size=3)
some_tools = st.lists(st.sampled_from(["list", "get", "drop"]), unique=True, min_size=1, max_size=3)


def _selections(at_least: int = 0) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.fixed_dictionaries({"name": names}, optional={"tools": some_tools})
    return st.lists(one, min_size=at_least, max_size=2, unique_by=lambda item: str(item["name"]))


selections = _selections()
strategy = st.sampled_from(["langchain", "synthesis", "single-call", "react", "native-thinking"])
iterations = st.integers(1, 200)
policy = st.sampled_from(["Any", "All"])
timeouts = st.fixed_dictionaries({}, optional={"stallSeconds": iterations, "toolCallSeconds": iterations})
allowed = st.sampled_from(
    [
        {"from": "None"},
        {"from": "All"},
        {"from": "Selector", "selector": {"matchLabels": {"env": "prod"}}},
        {"from": "Selector", "selector": {"matchExpressions": [{"key": "env", "operator": "Exists"}]}},
    ]
)
summarization = st.fixed_dictionaries({}, optional={"llmProvider": names})
summary = st.fixed_dictionaries({"enabled": st.booleans()}, optional={"llmProvider": names})
fallback = st.lists(
    st.fixed_dictionaries(
        {"llmProvider": names}, optional={"strategy": st.sampled_from(["react", "native-thinking", "langchain"])}
    ),
    max_size=2,
)
budget = st.fixed_dictionaries({}, optional={"tokens": st.integers(1, 9), "costUSD": st.integers(1, 9)})
native_tools = st.fixed_dictionaries({}, optional={"googleSearch": st.booleans(), "urlContext": st.booleans()})
slot = st.fixed_dictionaries(
    {"name": names},
    optional={
        "displayName": names,
        "llmProvider": names,
        "strategy": strategy,
        "maxIterations": iterations,
        "mcpServers": selections,
        "fallback": fallback,
    },
)


def _stage(name: str) -> st.SearchStrategy[dict[str, Any]]:
    optional = {
        "successPolicy": policy,
        "maxIterations": iterations,
        "mcpServers": selections,
        "synthesis": st.fixed_dictionaries({}, optional={"agent": names, "strategy": strategy, "llmProvider": names}),
    }
    several = st.fixed_dictionaries(
        {"name": st.just(name), "agents": st.lists(slot, min_size=1, max_size=3)}, optional=optional
    )
    repeated = st.fixed_dictionaries(
        {"name": st.just(name), "agents": st.lists(slot, min_size=1, max_size=1), "replicas": st.integers(1, 4)},
        optional=optional,
    )
    return several | repeated


common: dict[str, st.SearchStrategy[Any]] = {
    "llmProvider": names,
    "strategy": strategy,
    "maxIterations": iterations,
    "successPolicy": policy,
    "timeouts": timeouts,
    "maxConcurrent": iterations,
    "executiveSummary": summary,
    "fallback": fallback,
    "budget": budget,
}


def _specs(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


agents = st.builds(
    lambda name, place, spec: agent(name, place, **spec),
    names,
    places,
    _specs(
        instructions=st.text(max_size=9),
        mcpServers=selections,
        strategy=strategy,
        allowedNamespaces=allowed,
        nativeTools=native_tools,
    ),
)
rates = st.fixed_dictionaries({"inputPerMillion": st.integers(0, 9), "outputPerMillion": st.integers(0, 9)})
providers = st.builds(
    lambda make, name, place, spec: make(name, place, **spec),
    st.sampled_from([provider, google]),
    names,
    places,
    _specs(allowedNamespaces=allowed, nativeTools=native_tools, rates=rates),
)
servers = st.builds(
    lambda name, place, spec: server(name, place, **spec),
    names,
    places,
    _specs(
        allowedNamespaces=allowed,
        tools=st.fixed_dictionaries({"deny": tools}, optional={"allow": some_tools}),
        reach=_specs(boundBy=st.sampled_from(["Argument", "Server"]), unboundNamespaces=allowed),
    ),
)
chains = st.builds(
    lambda name, place, stages, spec: chain(name, place, **{"llmProvider": None, **spec, "stages": stages}),
    names,
    places,
    st.tuples(_stage("first")) | st.tuples(_stage("first"), _stage("second")),
    _specs(
        **common,
        alertTypes=st.sampled_from([["PodCrash"], ["Other"], []]),
        mcpServers=selections,
        alertTools=st.sampled_from(["Allowed", "Denied"]),
        allowedNamespaces=allowed,
        allowedProviderNamespaces=allowed,
        chat=_specs(agent=names, llmProvider=names, strategy=strategy, mcpServers=selections),
    ),
)
all_defaults = st.builds(lambda place, spec: defaults(place, **spec), places, _specs(**common))
alerts = st.builds(
    lambda spec: alert(**spec),
    _specs(
        chainRef=st.fixed_dictionaries({"name": names}),
        mcpServers=_selections(1),
        nativeTools=_specs(googleSearch=st.booleans()),
        runbook=st.sampled_from([{"inline": "x"}, {"inline": "y"}, {"url": "https://example.com/x"}]),
    ),
)
# A world that works comes first, so that what is drawn mends or spoils it instead of meeting nothing at all.
working: list[AnyResource] = [
    *(make(name, TEAM) for make in (agent, provider, server) for name in ("triage", "model", "kube")),
    chain(),
]
worlds = st.lists(agents | providers | servers | chains | all_defaults, max_size=14).flatmap(
    lambda drawn: st.sampled_from([drawn, working + drawn])
)


def _holds(plan: Plan, known: set[tuple[str, str, str]]) -> None:
    assert {(ref.kind, ref.namespace, ref.name) for ref in plan.objects} <= known
    for each in plan.stages:
        shown = [member.name for member in each.agents]
        assert shown and len(set(shown)) == len(shown)
        assert (each.synthesis is not None) == (each.parallel is not None) == (len(shown) > 1)
    assert plan.chat is None or plan.chat.max_iterations >= 1
    for one in (member for each in plan.stages for member in (*each.agents, each.synthesis) if member is not None):
        for model, strategy in ((one.provider, one.strategy), *((e.provider, e.strategy) for e in one.fallback)):
            assert runs_on(strategy, model.type)
            assert plan.budget.cost_usd is None or model.rates is not None
    assert Plan.model_validate_json(plan.dump()).digest == plan.digest


def _rights_do_not_mix(plan: Plan, of: Chain, catalog: ResourceCatalog) -> None:
    """A server of another namespace is held to the run's, and driven by models of its own, unless that is granted."""
    agents = [one for each in plan.stages for one in (*each.agents, each.synthesis) if one is not None]
    agents += [one for one in (plan.executive_summary, plan.chat) if one is not None]
    labels = catalog.namespace_labels(plan.namespace)
    foreign = {one.ref: one for each in agents for one in each.servers if one.ref.namespace != plan.namespace}
    for one in foreign.values():
        there = catalog.get(MCPServer, one.ref.namespace, one.ref.name)
        assert there is not None
        granted = lets_in(there.spec.reach.unbound_namespaces, labels)
        assert one.reach is not None and one.reach.namespace == (None if granted else plan.namespace)
        event("granted" if granted else "bound")
        if plan.chain.namespace == plan.namespace:
            assert admits(there, plan.namespace, labels)
    if foreign and plan.chain.namespace != plan.namespace and not lets_in(of.spec.allowed_provider_namespaces, labels):
        for each in agents:
            asked = (each.provider, *(entry.provider for entry in each.fallback), each.summarizer)
            assert {one.ref.namespace for one in asked if one is not None} == {plan.chain.namespace}


@examples(150)
@given(world=worlds, what=alerts, library=st.sampled_from([LIBRARY, None]))
def test_resolving_gives_a_sound_plan_or_says_why_not(world: list[AnyResource], what: Any, library: str | None) -> None:
    catalog = ResourceCatalog(world, {TEAM: {"env": "prod"}})
    try:
        found = select(namespace=TEAM, alert=what, catalog=catalog, library_namespace=library)
        if isinstance(found, NoChain):
            found = next((obj for obj in world if isinstance(obj, Chain)), chain())
        plan = resolve(PlanRequest(namespace=TEAM, alert=what, chain=found, catalog=catalog, library_namespace=library))
    except PlanInvalid as invalid:
        assert invalid.errors
        assert all(error.field.startswith("spec.") and error.message for error in invalid.errors)
        event("refused")
    else:
        event("planned")
        _rights_do_not_mix(plan, found, catalog)
        _holds(plan, {(obj.KIND, obj.metadata.namespace, obj.metadata.name) for obj in [*world, found]})


reaches = _specs(boundBy=st.sampled_from(["Argument", "Server"]), unboundNamespaces=allowed)


@examples(150)
@given(
    theirs=_specs(llmProvider=names, fallback=fallback, executiveSummary=summary, summarization=summarization),
    ours=_specs(llmProvider=names, fallback=fallback, executiveSummary=summary, summarization=summarization),
    of_chain=_specs(
        llmProvider=names,
        fallback=fallback,
        executiveSummary=summary,
        summarization=summarization,
        allowedProviderNamespaces=allowed,
        chat=_specs(llmProvider=names, mcpServers=selections),
    ),
    reach=reaches,
    what=alerts,
)
def test_rights_do_not_mix_whatever_both_namespaces_name(
    theirs: dict[str, Any], ours: dict[str, Any], of_chain: dict[str, Any], reach: dict[str, Any], what: Any
) -> None:
    every = ("triage", "model", "kube", "synthesis-agent")
    spec = {"llmProvider": None, **of_chain, "allowedNamespaces": {"from": "All"}, "stages": [stage(), stage(name="b")]}
    world: list[AnyResource] = [
        chain(namespace=LIBRARY, **spec),
        *(provider(name, place, allowedNamespaces={"from": "All"}) for name in every for place in (TEAM, LIBRARY)),
        *(server(name, LIBRARY, reach=reach, allowedNamespaces={"from": "All"}) for name in every),
        *(agent(name, LIBRARY, mcpServers=selected("kube")) for name in every),
        defaults(TEAM, **theirs),
        defaults(LIBRARY, **ours),
    ]
    catalog = ResourceCatalog(world, {TEAM: {"env": "prod"}})
    (shared,) = catalog.list(Chain, LIBRARY)
    try:
        plan = resolve(
            PlanRequest(namespace=TEAM, alert=what, chain=shared, catalog=catalog, library_namespace=LIBRARY)
        )
    except PlanInvalid:
        event("refused")
    else:
        _rights_do_not_mix(plan, shared, catalog)


MAKE: dict[str, Any] = {"Agent": agent, "LLMProvider": provider, "MCPServer": server}


@examples(50)
@given(world=worlds)
def test_an_object_whose_references_all_exist_has_nothing_that_dangles(world: list[AnyResource]) -> None:
    named = {reference for obj in world for reference in references(obj)}
    catalog = ResourceCatalog([*world, *(MAKE[kind](name, place) for kind, place, name in sorted(named))])
    errors = [error for obj in world for error in check_references(obj, catalog)]
    assert not [error for error in errors if error.message.startswith("there is no ")]
