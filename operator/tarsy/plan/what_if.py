"""Changes a chain as a replay asks for it, and checks where recorded results may go.

Decision: the provider of a replay is looked up where its chain is, as if the chain named it. So the rule for usual runs
holds by itself: where tools act with the rights of another namespace, that namespace chooses who is sent their results.
Recorded results bring the terms of the run that they come from along: a replay with another chain sends them only to
providers that the recorded chain's namespace names or admits.
"""

from tarsy.plan.model import AgentPlan, Plan, ProviderPlan
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.common import ExecutiveSummarySettings
from tarsy.resources.v1alpha1.stage import Synthesis


def with_provider(chain: Chain, provider: str) -> Chain:
    """Returns a chain whose agents all use one provider, without fallbacks and without a second attempt by another.

    Args:
        chain: as it is.
        provider: name of an LLMProvider in the chain's namespace.
    """
    spec = chain.spec
    stages = tuple(
        stage.model_copy(
            update={
                "agents": tuple(
                    slot.model_copy(update={"llm_provider": provider, "fallback": ()}) for slot in stage.agents
                ),
                "synthesis": (stage.synthesis or Synthesis()).model_copy(update={"llm_provider": provider}),
                "fallback": (),
                "escalate": None,
            }
        )
        if stage.agents
        else stage
        for stage in spec.stages
    )
    summary = (spec.executive_summary or ExecutiveSummarySettings()).model_copy(update={"llm_provider": provider})
    changes = {
        "llm_provider": provider,
        "stages": stages,
        "executive_summary": summary,
        "chat": spec.chat.model_copy(update={"llm_provider": provider}) if spec.chat else None,
        "fallback": (),
    }
    return chain.model_copy(update={"spec": spec.model_copy(update=changes)})


def without_other_providers(plan: Plan) -> Plan:
    """Returns the plan of `with_provider` with long results summarized by the same provider."""
    stages = tuple(stage.with_agents(_summarizing_itself) for stage in plan.stages)
    return plan.model_copy(update={"stages": stages})


def _summarizing_itself(agent: AgentPlan) -> AgentPlan:
    changes: dict[str, object] = {"summarizer": None}
    if agent.delegation is not None:
        subs = (one.model_copy(update={"agent": _summarizing_itself(one.agent)}) for one in agent.delegation.agents)
        changes["delegation"] = agent.delegation.model_copy(update={"agents": tuple(subs)})
    return agent.model_copy(update=changes)


def results_bound_to(source: Plan) -> str | None:
    """Returns the namespace whose rights the recorded results were read with, if it is not the run's own; else None.

    Args:
        source: plan of the recorded run.
    """
    servers = (server for agent in source.agents for server in agent.servers)
    foreign = any(server.reach is not None and server.reach.foreign for server in servers)
    return source.chain.namespace if foreign else None


def strange_providers(plan: Plan, source: Plan) -> list[str]:
    """Returns the providers of a replay that recorded results may not be sent to, as namespace/name.

    They may go to providers of the namespace whose rights they were read with, and to those they have gone to already.

    Args:
        plan: of the replay.
        source: of the recorded run.
    """
    found = {
        f"{provider.ref.namespace}/{provider.ref.name}" for provider in plan.providers if is_stranger(provider, source)
    }
    return sorted(found)


def is_stranger(provider: ProviderPlan, source: Plan) -> bool:
    """Returns whether the results of a recorded run may not be sent to a provider.

    Args:
        provider: in question.
        source: plan of the recorded run.
    """
    home = results_bound_to(source)
    if home is None or provider.ref.namespace == home:
        return False
    return all(
        (provider.ref.namespace, provider.ref.name, provider.base_url)
        != (known.ref.namespace, known.ref.name, known.base_url)
        for known in source.providers
    )
