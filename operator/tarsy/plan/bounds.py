"""Merges the limits and the budget of a run, field by field, and checks that its cost can be counted.

Decision: a chain's budget replaces the namespace's, since the author of a chain knows what it needs. An
Investigation's can only lower it, since starting a run must not spend more than the chain allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tarsy.plan.errors import FieldPath
from tarsy.plan.levels import Level, Scope
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentLimits, AgentPlan, PlannedBudget
from tarsy.resources.v1alpha1.common import Budget as BudgetSpec
from tarsy.resources.v1alpha1.llm_provider import LLMProvider


def limits(scope: Scope) -> tuple[AgentLimits, Mapping[str, FieldPath]]:
    """Merges the limits, field by field: built in, the defaults, the chain; with the field of each that is set."""
    values: dict[str, float] = {}
    origins: dict[str, FieldPath] = {}
    for spec, at in ((scope.defaults, scope.at_defaults), (scope.chain, scope.at_chain)):
        for block, where in ((spec.timeouts, at / "timeouts"), (spec.loop, at / "loop")):
            for name, field in type(block).model_fields.items() if block else ():
                value = getattr(block, name)
                if value is not None:
                    values[name], origins[name] = value, where / str(field.alias)
    return AgentLimits.model_validate(values), origins


def budget(scope: Scope, of_run: Level[BudgetSpec]) -> tuple[PlannedBudget, Mapping[str, FieldPath]]:
    """Merges the budget, field by field: the defaults, the chain, and the run's own where it is lower."""
    values: dict[str, float] = {}
    origins: dict[str, FieldPath] = {}
    for spec, at in (
        (scope.defaults.budget, scope.at_defaults / "budget"),
        (scope.chain.budget, scope.at_chain / "budget"),
        of_run,
    ):
        for name, field in BudgetSpec.model_fields.items() if spec else ():
            value = getattr(spec, name)
            if value is None or (spec is of_run[0] and value >= values.get(name, value + 1)):
                continue
            values[name], origins[name] = value, at / str(field.alias)
    return PlannedBudget.model_validate(values), origins


def chat_budget(scope: Scope) -> tuple[PlannedBudget, FieldPath | None]:
    """Returns the budget of one answer to a question, with the field of its limit in dollars."""
    spec = scope.chain.chat.budget if scope.chain.chat else None
    if spec is None:
        return PlannedBudget(), None
    at = scope.at_chain / "chat" / "budget" / "costUSD"
    return PlannedBudget.model_validate(spec.model_dump()), at if spec.cost_usd is not None else None


def costs_are_known(agents: Iterable[AgentPlan], at_cost: FieldPath | None, look: Lookup) -> None:
    """Reports every provider of unknown price when there is a budget in dollars.

    Args:
        agents: the agents that it bounds.
        at_cost: the field of the budget in dollars; None: there is none.
        look: gathers the errors.
    """
    if at_cost is None:
        return
    for agent in agents:
        others = (*(entry.provider for entry in agent.fallback), agent.summarizer)
        for provider in (agent.provider, *others):
            if provider is not None and provider.rates is None:
                look.report(
                    FieldPath(LLMProvider.KIND, provider.ref.namespace, provider.ref.name) / "rates",
                    f"is not set and the price of {provider.model} is not known, but {at_cost.kind} "
                    f"{at_cost.namespace}/{at_cost.name} has a budget in dollars "
                    f"({at_cost.path}); set inputPerMillion and outputPerMillion, or leave costUSD out",
                )
