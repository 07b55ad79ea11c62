"""Resolves one alert and one chain into the frozen plan of a run, and reports all errors at once.

Decision: every reference is followed although an earlier one failed, and the plan is built only when nothing was
reported, so whoever mends a chain sees all that is wrong in one go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tarsy.plan import builtin
from tarsy.plan.acting import report_order, report_policies
from tarsy.plan.agents import Agents, ResolvedAgent
from tarsy.plan.bounds import budget as lowest_budget
from tarsy.plan.bounds import chat_budget, costs_are_known, limits
from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.levels import Level, Scope, last_set
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import (
    AgentPlan,
    ChangesPlan,
    EscalationPlan,
    MaskingPlan,
    Plan,
    PrecedentsPlan,
    StagePlan,
    SuccessPolicy,
)
from tarsy.plan.parts import masking_plan
from tarsy.plan.providers import Providers, Terms
from tarsy.plan.scope import lets_in
from tarsy.plan.select import search_path
from tarsy.plan.skills import Skills
from tarsy.plan.tools import Servers, acts_elsewhere_in, servers
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.common import Budget, NativeTools
from tarsy.resources.v1alpha1.investigation_defaults import (
    DEFAULTS_NAME,
    InvestigationDefaults,
    InvestigationDefaultsSpec,
)
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.stage import ChangesSettings, Stage, Synthesis


def defaults_for(namespace: str, catalog: Catalog, library_namespace: str | None) -> InvestigationDefaults | None:
    """Returns the defaults of runs in `namespace`: its own object, else the library's; they are not merged.

    Args:
        namespace: the run's.
        catalog: the known objects.
        library_namespace: where shared objects are, or None.
    """
    places = search_path(namespace, library_namespace)
    objects = (catalog.get(InvestigationDefaults, place, DEFAULTS_NAME) for place in places)
    return next((found for found in objects if found is not None), None)


@dataclass(frozen=True, slots=True)
class Explained:
    """A plan, and the field each of its settings comes from, by path in the plan (missing: built in)."""

    plan: Plan
    origins: Mapping[str, FieldPath]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Holds the inputs from which the plan of a run is resolved.

    Args:
        namespace: the run's.
        alert: the alert, with what it brings itself.
        chain: the chain to run (see `select`).
        catalog: the objects there are.
        library_namespace: where shared objects are, or None.
        source: where the alert stands, for errors (the spec of an Alert, or an Investigation's `spec.alert`).
        budget: the run's own, with its field; it can only lower that of the chain.
        any_alert: whether the plan is for alerts of any type and namespace, so that it contains all skills.
    """

    namespace: str
    alert: AlertContent
    chain: Chain
    catalog: Catalog
    library_namespace: str | None
    source: FieldPath | None = None
    budget: tuple[Budget, FieldPath] | None = None
    any_alert: bool = False

    @property
    def at(self) -> FieldPath:
        """Returns the field path of the alert."""
        return self.source or FieldPath("Alert", self.namespace, "")


def resolve(request: PlanRequest) -> Plan:
    """Resolves the plan of a run.

    Raises:
        PlanInvalid: with every mistake of the alert, the chain and what they name.
    """
    return explain_plan(request).plan


def explain_plan(request: PlanRequest, look: Lookup | None = None) -> Explained:
    """Resolves the plan of a run, with the field that each of its settings comes from.

    Args:
        request: for the plan.
        look: resolves the references, and keeps those found where no plan can be made; None: a new one.

    Raises:
        PlanInvalid: as `resolve` does.
    """
    alert, chain, at = request.alert, request.chain, request.at
    look = look or Lookup(request.catalog)
    scope = _scope(request, look)
    look.admitted(chain, request.namespace, at / "chainRef" / "name" if alert.chain_ref else at / "alertType")
    wish = _wish(alert, at, chain, look)
    brought = _brought(alert, at, scope, look)
    terms = _terms(scope, request.catalog, brought)
    providers = Providers(scope, look, (wish, at / "nativeTools"), terms)
    skills = Skills(scope, look, None if request.any_alert else alert.alert_type)
    agents, gathered = Agents(scope, look, providers, brought, skills), _Gathered(look)
    stages = _stages(chain, scope, agents, gathered)
    of_stages = [agent for stage in stages for agent in stage.members]
    _wish_is_met(wish, at, chain, of_stages, gathered.complete, look)
    summary = gathered.add("executive_summary", agents.executive_summary())
    bounds, origins_of_limits = limits(scope)
    limit, origins_of_budget = lowest_budget(scope, request.budget or (None, at))
    costs_are_known(gathered.agents, origins_of_budget.get("cost_usd"), look)
    chat = gathered.add("chat", agents.chat(of_stages))
    answers, in_dollars = chat_budget(scope)
    costs_are_known((chat,) if chat else (), in_dollars, look)
    if not look.errors:
        providers.fallbacks_are_others()
    chain_ref = look.use(chain)
    if look.errors:
        raise PlanInvalid(look.errors)
    plan = Plan(
        namespace=request.namespace,
        alert_type=alert.alert_type,
        chain=chain_ref,
        stages=stages,
        executive_summary=summary,
        chat=chat,
        chat_seconds=scope.chain.chat.timeout_seconds if scope.chain.chat else None,
        chat_budget=answers,
        alert_masking=_masking(scope.defaults.alert_masking),
        model_output_masking=_masking(scope.defaults.model_output_masking),
        limits=bounds,
        budget=limit,
        namespace_limit=scope.defaults.max_concurrent,
        chain_limit=scope.chain.max_concurrent,
        objects=look.used,
        brought=tuple(server.ref for server in brought[0]) if brought else (),
        skills=skills.plans,
        precedents=_precedents(scope, gathered),
        not_used=tuple(look.left_out),
    )
    gathered.note("limits", origins_of_limits)
    gathered.note("budget", origins_of_budget)
    return Explained(plan, gathered.origins)


def _scope(request: PlanRequest, look: Lookup) -> Scope:
    """Returns where the settings of a run come from; the plan depends on the defaults that it reads."""
    namespace, chain, library_namespace = request.namespace, request.chain, request.library_namespace
    defaults = defaults_for(namespace, look.catalog, library_namespace)
    shared = look.catalog.get(InvestigationDefaults, chain.metadata.namespace, DEFAULTS_NAME)
    if defaults is not None:
        look.use(defaults)
    at_defaults = FieldPath(InvestigationDefaults.KIND, namespace, DEFAULTS_NAME)
    return Scope(
        path=search_path(namespace, library_namespace),
        chain=chain.spec,
        at_chain=FieldPath.of(chain),
        defaults=InvestigationDefaultsSpec() if defaults is None else defaults.spec,
        at_defaults=at_defaults if defaults is None else FieldPath.of(defaults),
        shared=InvestigationDefaultsSpec() if shared is None else shared.spec,
    )


def _terms(scope: Scope, catalog: Catalog, brought: Servers | None) -> Terms:
    """Whether the defaults of the run's namespace may name providers (rights of two namespaces never mix)."""
    grant = scope.chain.allowed_provider_namespaces
    if scope.home == scope.namespace or lets_in(grant, catalog.namespace_labels(scope.namespace)):
        return Terms()
    return Terms(acts_elsewhere_in(scope, Lookup(catalog), brought))


def _masking(setting: Masking | None) -> MaskingPlan | None:
    return masking_plan(setting) if setting else None


class _Gathered:
    """The agents made so far, whether all of them could be made, and where their settings come from."""

    def __init__(self, look: Lookup) -> None:
        self.look = look
        self.agents: list[AgentPlan] = []
        self.origins: dict[str, FieldPath] = {}
        self.complete = True

    def add(self, path: str, made: ResolvedAgent | None) -> AgentPlan | None:
        """Notes an agent that stands at `path` of the plan, and gives its part of the plan."""
        if made is None:
            self.complete = False
            return None
        self.agents.append(made.plan)
        self.note(path, made.origins)
        return made.plan

    def note(self, path: str, origins: Mapping[str, FieldPath]) -> None:
        """Notes where the settings at `path` of the plan come from."""
        self.origins |= {f"{path}.{name}": at for name, at in origins.items()}


def _stages(chain: Chain, scope: Scope, agents: Agents, gathered: _Gathered) -> tuple[StagePlan, ...]:
    at = scope.at_chain / "stages"
    stages = tuple(
        _stage(stage, at[index], f"stages[{index}]", scope, agents, gathered)
        for index, stage in enumerate(chain.spec.stages)
    )
    report_order(chain.spec.stages, at, gathered.look)
    return stages


def _stage(stage: Stage, at: FieldPath, path: str, scope: Scope, agents: Agents, gathered: _Gathered) -> StagePlan:
    gathered.look.stage_fits(stage, at)
    if stage.reads_changes:
        return _changes_stage(stage, at, path, gathered)
    members = _members(stage, at, path, agents, gathered)
    replica = stage.replicas > 1
    if stage.acts:
        report_policies(stage, members, at, gathered.look)
    several = replica or len(stage.agents) > 1
    policy = last_set(
        (scope.defaults.success_policy, scope.at_defaults / "successPolicy"),
        (scope.chain.success_policy, scope.at_chain / "successPolicy"),
        (stage.success_policy, at / "successPolicy"),
    )
    if policy:
        gathered.origins[f"{path}.success_policy"] = policy[1]
    synthesis = None
    if several:
        synthesis = gathered.add(f"{path}.synthesis", agents.synthesis(stage.synthesis or Synthesis(), at, stage))
    return StagePlan(
        name=stage.name,
        agents=members,
        parallel=None if not several else "replica" if replica else "multi_agent",
        success_policy=SuccessPolicy(policy[0]) if policy else builtin.SUCCESS_POLICY,
        synthesis=synthesis,
        acts=True if stage.acts else None,
        escalation=_escalation(stage, at, path, agents, gathered, joins=several),
    )


def _members(
    stage: Stage, at: FieldPath, path: str, agents: Agents, gathered: _Gathered, provider: Level[str] | None = None
) -> tuple[AgentPlan, ...]:
    slots = [agents.of_stage(stage, at, index, provider) for index in range(len(stage.agents))]
    if stage.replicas > 1:
        only = slots[0]
        numbers = range(1, stage.replicas + 1)
        slots = [only.called(f"{only.plan.name}-{number}") for number in numbers] if only else [None]
    members = [gathered.add(f"{path}.agents[{index}]", made) for index, made in enumerate(slots)]
    return tuple(agent for agent in members if agent is not None)


def _escalation(
    stage: Stage, at: FieldPath, path: str, agents: Agents, gathered: _Gathered, *, joins: bool
) -> EscalationPlan | None:
    """Returns the second attempt of a stage: the same agents, all with the other provider."""
    if (wish := stage.escalate) is None:
        return None
    path, provider = f"{path}.escalation", (wish.to, at / "escalate" / "to")
    members, synthesis = _members(stage, at, path, agents, gathered, provider), None
    if joins:
        made = agents.synthesis(stage.synthesis or Synthesis(), at, stage, provider)
        synthesis = gathered.add(f"{path}.synthesis", made)
    gathered.origins[f"{path}.when"] = at / "escalate" / "when"
    return EscalationPlan(when=wish.when, agents=members, synthesis=synthesis)


def _changes_stage(stage: Stage, at: FieldPath, path: str, gathered: _Gathered) -> StagePlan:
    """The account is one of the run's namespace, as that of an Agent is; acceptance adds whose rights limit it."""
    settings = stage.changes or ChangesSettings()
    for name, field in (
        ("service_account_name", "account"),
        ("window_seconds", "window_seconds"),
        ("stop_when", "stop_when"),
    ):
        if name in settings.model_fields_set:
            json_name = str(ChangesSettings.model_fields[name].alias)
            gathered.origins[f"{path}.changes.{field}"] = at / "changes" / json_name
    return StagePlan(
        name=stage.name,
        changes=ChangesPlan(
            account=settings.service_account_name,
            window_seconds=settings.window_seconds,
            stop_when=settings.stop_when,
        ),
    )


def _precedents(scope: Scope, gathered: _Gathered) -> PrecedentsPlan | None:
    settings = scope.chain.precedents
    if settings is None or settings.use == "Off":
        return None
    gathered.origins["precedents.scope"] = scope.at_chain / "precedents" / "scope"
    return PrecedentsPlan(scope=settings.scope)


def _brought(alert: AlertContent, at: FieldPath, scope: Scope, look: Lookup) -> Servers | None:
    """The servers that the alert brings; None when it brings none (an empty list is none)."""
    if not alert.mcp_servers or (scope.chain.alert_tools == "Denied"):
        return None
    field = at / "mcpServers"
    return servers(alert.mcp_servers, field, scope.path, scope.namespace, look), field


def _wish(alert: AlertContent, at: FieldPath, chain: Chain, look: Lookup) -> NativeTools | None:
    """The alert's wish for native tools, if its chain takes one; reports what it brings against the chain's will."""
    if chain.spec.alert_tools != "Denied":
        return alert.native_tools
    denial = (
        f"{chain} does not accept tools from alerts (spec.alertTools is Denied); leave this out, or run another chain"
    )
    if alert.mcp_servers:
        look.report(at / "mcpServers", denial)
    for field in alert.native_tools.to_dict() if alert.native_tools else ():
        look.report(at / "nativeTools" / field, denial)
    return None


def _wish_is_met(
    wish: NativeTools | None, at: FieldPath, chain: Chain, agents: list[AgentPlan], complete: bool, look: Lookup
) -> None:
    """Reports a native tool that the alert wants and no agent of the run can have, once all agents are known."""
    for tool, field in builtin.NATIVE_TOOLS.items() if complete else ():
        if wish is not None and getattr(wish, tool) and not any(tool in agent.native_tools for agent in agents):
            look.report(
                at / "nativeTools" / field,
                f"no agent of {chain} has a provider and a strategy with native tools; leave this out, "
                "or run another chain",
            )
