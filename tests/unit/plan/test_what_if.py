"""Recorded results of tools that acted with the rights of another namespace stay with its providers."""

from typing import Any

from tarsy.plan.model import AgentPlan, HttpTransport, ObjectRef, Plan, ProviderPlan, ReachPlan, ServerPlan, StagePlan
from tarsy.plan.model import Strategy as S
from tarsy.plan.what_if import strange_providers


def provider(namespace: str, name: str = "p", url: str | None = None) -> ProviderPlan:
    return ProviderPlan(
        ref=ObjectRef(kind="LLMProvider", namespace=namespace, name=name), type="openai", model="m", base_url=url
    )


def plan(*providers: ProviderPlan, foreign: bool, chain: str = "library") -> Plan:
    ref = ObjectRef(kind="MCPServer", namespace=chain, name="k")
    server = ServerPlan(ref=ref, name="k", transport=HttpTransport(url="http://k"), reach=ReachPlan(foreign=foreign))
    agents = tuple(
        AgentPlan(name=p.ref.name, agent="a", strategy=S.REACT, provider=p, max_iterations=1, servers=(server,))
        for p in providers
    )
    fields: dict[str, Any] = {"namespace": "shop", "alert_type": "t", "executive_summary": None}
    chain_ref = ObjectRef(kind="Chain", namespace=chain, name="c")
    return Plan(chain=chain_ref, stages=(StagePlan(name="s", agents=agents),), **fields)


def test_a_tenants_own_chain_does_not_lead_results_of_the_library_to_its_own_provider() -> None:
    source = plan(provider("library"), foreign=True)
    theft = plan(provider("shop", "mine", "https://attacker.example"), foreign=False, chain="shop")
    assert strange_providers(theft, source) == ["shop/mine"]
    assert strange_providers(plan(provider("library", "better"), foreign=True), source) == []


def test_a_provider_that_was_admitted_stays_admitted_at_its_address_only() -> None:
    source = plan(provider("shop", "ours", "https://a.example"), foreign=True)
    assert strange_providers(plan(provider("shop", "ours", "https://a.example"), foreign=False), source) == []
    assert strange_providers(plan(provider("shop", "ours", "https://b.example"), foreign=False), source) == [
        "shop/ours"
    ]


def test_results_of_the_namespace_itself_go_where_its_chains_say() -> None:
    source = plan(provider("shop"), foreign=False, chain="shop")
    assert strange_providers(plan(provider("shop", "mine"), foreign=False, chain="shop"), source) == []
