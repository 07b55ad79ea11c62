"""Whom the tool servers of a plan act as."""

from typing import Any

from tarsy.plan.model import Plan
from unit.plan.builders import agent, chain, plan_of, provider, server, stage

COMMAND = {"type": "stdio", "stdio": {"command": "x", "kubeconfig": True}}
ADDRESS = {"type": "http", "http": {"url": "http://127.0.0.1:1/mcp", "tokenAudience": "tools"}}


RUN = {"image": "tools:1", "command": ["x"], "scope": "PerRun"}


def workload(name: str, **run: Any) -> Any:
    """A server without an address of its own, which the builder gives others."""
    return server(name, transport={"type": "stdio"}, run={**RUN, **run})


def uses(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def made(*agents: Any, **change: Any) -> Plan:
    servers = [server("command", transport=COMMAND), server("address", transport=ADDRESS), server("plain")]
    stages = [stage(agents=uses(*(one.metadata.name for one in agents)))]
    return plan_of([provider(), chain(stages=stages, **change), *servers, *agents])


def accounts(plan: Plan) -> dict[str, dict[str, str | None]]:
    return {a.name: {s.name: s.account for s in a.servers} for a in plan.stages[0].agents}


def test_servers_that_ask_for_an_account_act_as_that_of_the_agent_and_others_as_nobodys() -> None:
    plan = made(agent(serviceAccountName="viewer", mcpServers=uses("command", "address", "plain")))
    assert accounts(plan) == {"triage": {"command": "viewer", "address": "viewer", "plain": None}}
    assert plan.accounts == {"viewer"}


def test_workloads_that_ask_for_a_kubeconfig_act_as_the_agent_and_others_as_themselves() -> None:
    own = workload("own", serviceAccountName="reader")
    shared = workload("shared", scope="Shared")
    one = agent(serviceAccountName="viewer", mcpServers=uses("acting", "own", "shared"))
    stages = [stage(agents=uses("triage"))]
    plan = plan_of([provider(), chain(stages=stages), workload("acting", kubeconfig=True), own, shared, one])
    assert accounts(plan) == {"triage": {"acting": "viewer", "own": None, "shared": None}}
    assert plan.accounts == {"viewer"}


def test_agent_without_an_account_leaves_its_servers_without() -> None:
    plan = made(agent(mcpServers=uses("command", "address")))
    assert accounts(plan) == {"triage": {"command": None, "address": None}}
    assert plan.accounts == frozenset()


def test_account_whose_servers_ask_for_none_is_no_part_of_the_plan() -> None:
    assert made(agent(serviceAccountName="viewer", mcpServers=uses("plain"))).accounts == frozenset()


def test_agents_of_one_stage_act_as_different_accounts() -> None:
    plan = made(
        agent("one", serviceAccountName="a", mcpServers=uses("command")),
        agent("two", serviceAccountName="b", mcpServers=uses("command")),
    )
    assert accounts(plan) == {"one": {"command": "a"}, "two": {"command": "b"}}
    assert plan.accounts == {"a", "b"}


def test_chat_acts_as_the_agents_whose_servers_it_has_where_they_agree() -> None:
    plan = made(
        agent("one", serviceAccountName="a", mcpServers=uses("command", "address")),
        agent("two", serviceAccountName="b", mcpServers=uses("command")),
    )
    assert plan.chat is not None
    assert {s.name: s.account for s in plan.chat.servers} == {"command": None, "address": "a"}
    assert plan.to_answer().accounts == {"a"}


def test_chat_with_servers_of_its_own_acts_as_nobody_unless_its_agent_says_whom() -> None:
    investigator = agent(serviceAccountName="viewer", mcpServers=uses("command"))
    plan = made(investigator, chat={"mcpServers": uses("address")})
    assert plan.chat is not None and [s.account for s in plan.chat.servers] == [None]
    talker = agent("talker", serviceAccountName="talks")
    servers = [server("command", transport=COMMAND), server("address", transport=ADDRESS)]
    chat = {"agent": "talker", "mcpServers": uses("address")}
    plan = plan_of([provider(), chain(chat=chat), *servers, investigator, talker])
    assert plan.chat is not None and [s.account for s in plan.chat.servers] == ["talks"]
