"""One alert and one chain, resolved into the frozen plan of a run, with all errors at once.

Decision: every reference is followed although an earlier one failed, and the plan is built only when nothing was
reported, so whoever mends a chain sees all that is wrong in one go.
"""

from __future__ import annotations

from tarsy.plan import builtin
from tarsy.plan.agents import Agents, Scope, last_set, servers
from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import At, PlanInvalid
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import Limits, Plan, ServerPlan, StagePlan, SuccessPolicy
from tarsy.plan.select import search_path
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.chain import Chain, Stage, Synthesis
from tarsy.resources.v1alpha1.investigation_defaults import (
    DEFAULTS_NAME,
    InvestigationDefaults,
    InvestigationDefaultsSpec,
)


def defaults_for(namespace: str, catalog: Catalog, library_namespace: str | None) -> InvestigationDefaults | None:
    """The defaults of runs in `namespace`: its own object if it has one, else the library's; they are not merged."""
    places = search_path(namespace, library_namespace)
    objects = (catalog.get(InvestigationDefaults, place, DEFAULTS_NAME) for place in places)
    return next((found for found in objects if found is not None), None)


def resolve(
    *,
    namespace: str,
    alert: AlertContent,
    chain: Chain,
    catalog: Catalog,
    library_namespace: str | None,
    source: At | None = None,
) -> Plan:
    """The plan of a run.

    Args:
        namespace: the run's.
        alert: the alert, with what it brings itself.
        chain: the chain to run (see `select`).
        catalog: the objects there are.
        library_namespace: where shared objects are, or None.
        source: where the alert stands, for errors (the spec of an Alert, or an Investigation's `spec.alert`).

    Raises:
        PlanInvalid: with every mistake of the alert, the chain and what they name.
    """
    at = source or At("Alert", namespace, "")
    look = Lookup(catalog)
    defaults = defaults_for(namespace, catalog, library_namespace)
    scope = Scope(
        path=search_path(namespace, library_namespace),
        chain=chain.spec,
        at_chain=At.of(chain),
        defaults=InvestigationDefaultsSpec() if defaults is None else defaults.spec,
        at_defaults=At(InvestigationDefaults.KIND, namespace, DEFAULTS_NAME) if defaults is None else At.of(defaults),
    )
    if defaults is not None:
        look.use(defaults)
    look.admitted(chain, namespace, at / "chainRef" / "name" if alert.chain_ref else at / "alertType")
    _check_runbook(alert, at, look)
    _check_native_tools(alert, at, chain, look)
    agents = Agents(scope, look, _brought(alert, at, chain, scope, look))
    stages = tuple(
        _stage(stage, (scope.at_chain / "stages")[index], scope, agents, look)
        for index, stage in enumerate(chain.spec.stages)
    )
    summary = agents.executive_summary()
    chain_ref = look.use(chain)
    if look.errors:
        raise PlanInvalid(look.errors)
    return Plan(
        namespace=namespace,
        alert_type=alert.alert_type,
        chain=chain_ref,
        stages=stages,
        executive_summary=summary,
        limits=_limits(scope),
        namespace_limit=scope.defaults.max_concurrent,
        chain_limit=scope.chain.max_concurrent,
        objects=look.used,
    )


def _stage(stage: Stage, at: At, scope: Scope, agents: Agents, look: Lookup) -> StagePlan:
    look.stage_fits(stage, at)
    found = [agents.of_stage(stage, at, slot, (at / "agents")[index]) for index, slot in enumerate(stage.agents)]
    members = [agent for agent in found if agent is not None]
    replica = stage.replicas > 1
    if replica:
        members = [
            agent.model_copy(update={"name": f"{agent.name}-{number}"})
            for agent in members[:1]
            for number in range(1, stage.replicas + 1)
        ]
    several = replica or len(stage.agents) > 1
    policy = last_set(
        (scope.defaults.success_policy, scope.at_defaults / "successPolicy"),
        (scope.chain.success_policy, scope.at_chain / "successPolicy"),
        (stage.success_policy, at / "successPolicy"),
    )
    return StagePlan(
        name=stage.name,
        agents=tuple(members),
        parallel=None if not several else "replica" if replica else "multi_agent",
        success_policy=SuccessPolicy(policy[0]) if policy else builtin.SUCCESS_POLICY,
        synthesis=agents.synthesis(stage.synthesis or Synthesis(), at / "synthesis") if several else None,
    )


def _limits(scope: Scope) -> Limits:
    """Field by field: built in, the defaults, the chain."""
    set_ones: dict[str, float] = {}
    for timeouts in (scope.defaults.timeouts, scope.chain.timeouts):
        set_ones |= timeouts.model_dump(exclude_none=True) if timeouts else {}
    return Limits.model_validate(set_ones)


def _denial(chain: Chain) -> str:
    return f"{chain} takes no tools from alerts (spec.alertTools is Denied); leave this out, or run another chain"


def _brought(alert: AlertContent, at: At, chain: Chain, scope: Scope, look: Lookup) -> tuple[ServerPlan, ...] | None:
    """The servers that the alert brings; None when it brings none (an empty list is none)."""
    if not alert.mcp_servers:
        return None
    if chain.spec.alert_tools == "Denied":
        look.report(at / "mcpServers", _denial(chain))
        return None
    return servers(alert.mcp_servers, at / "mcpServers", scope.path, look)


def _check_native_tools(alert: AlertContent, at: At, chain: Chain, look: Lookup) -> None:
    chosen = {} if alert.native_tools is None else alert.native_tools.to_dict()
    for field, on in chosen.items():
        if chain.spec.alert_tools == "Denied":
            look.report(at / "nativeTools" / field, _denial(chain))
        elif on:
            look.report(at / "nativeTools" / field, "no provider of this version has native tools; leave this out")


def _check_runbook(alert: AlertContent, at: At, look: Lookup) -> None:
    if alert.runbook is not None and alert.runbook.url is not None:
        look.report(
            at / "runbook" / "url",
            "runbooks by URL are not available in this version; put the text in runbook.inline, "
            "or in a ConfigMap that runbook.configMapKeyRef names",
        )
