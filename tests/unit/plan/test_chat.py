"""Who answers follow-up questions."""

from __future__ import annotations

import pytest

from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import AgentPlan
from tarsy.resources.meta import AnyResource
from unit.plan.builders import LIBRARY, OPEN, agent, chain, plan_of, provider, selected, server, stage


def chat(objects: list[AnyResource]) -> AgentPlan | None:
    return plan_of(objects).chat


def test_questions_are_taken_unless_the_chain_takes_none() -> None:
    assert chat([agent(), provider(), chain()]) is not None
    assert chat([agent(), provider(), chain(chat={"enabled": False, "agent": "nobody"})]) is None


def test_the_agent_is_built_in_unless_one_is_there_for_it() -> None:
    found = chat([agent(), provider(), chain()])
    assert found is not None
    assert (found.name, found.agent, found.instructions) == ("chat-agent", "chat-agent", "")
    own = agent("chat-agent", instructions="Be short.")
    shared = agent("chat-agent", LIBRARY, instructions="From the library.", allowedNamespaces=OPEN)
    closed = agent("chat-agent", LIBRARY, instructions="Closed.")
    for objects, expected in (([own, shared], "Be short."), ([shared], "From the library."), ([closed], "")):
        found = chat([agent(), provider(), chain(), *objects])
        assert found is not None and found.instructions == expected


def test_an_agent_that_is_named_must_be_there() -> None:
    with pytest.raises(PlanInvalid, match=r"spec.chat.agent: there is no Agent answerer in namespace team-a"):
        plan_of([agent(), provider(), chain(chat={"agent": "answerer"})])


def test_the_servers_of_all_stages_are_there_once_with_all_the_tools_that_one_agent_has() -> None:
    stages = [
        stage({"name": "triage", "mcpServers": [{"name": "kube", "tools": ["list"]}]}),
        stage({"name": "triage", "mcpServers": [{"name": "kube", "tools": ["get", "list"]}]}, name="again"),
        stage({"name": "triage", "mcpServers": selected("logs")}, name="third"),
        stage({"name": "triage", "mcpServers": [{"name": "logs", "tools": ["tail"]}]}, name="last"),
    ]
    found = chat([agent(), provider(), server(), server("logs"), chain(stages=stages)])
    assert found is not None
    assert [(item.name, item.selected) for item in found.servers] == [("kube", ("list", "get")), ("logs", ())]


def test_a_chat_without_tools_gets_no_servers() -> None:
    objects = [agent(mcpServers=selected("kube")), provider(), server(), chain(chat={"strategy": "single-call"})]
    found = chat(objects)
    assert found is not None
    assert (found.servers, found.max_iterations) == ((), 1)
