"""Who lets an agent change things, and which tools a list names."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.model import ServerPlan
from tarsy.plan.policy import ToolPolicy, looser, names, stricter, waits_for_people
from tarsy.resources.meta import AnyResource
from unit.plan.builders import agent, alert, chain, plan_of, provider, selected, server, stage

ALL, APPROVE, READ = ToolPolicy.ALL, ToolPolicy.APPROVE, ToolPolicy.READ_ONLY


@pytest.mark.parametrize(
    ("policies", "held"),
    [
        ((), ALL),
        ((None,), READ),
        (("All",), ALL),
        (("All", None), READ),
        (("All", "ReadOnly"), READ),
        (("ReadOnly", "All"), READ),
        (("All", "All"), ALL),
    ],
)
def test_all_tools_need_everybodys_word(policies: tuple[str | None, ...], held: ToolPolicy) -> None:
    assert stricter(*policies) is held


@for_each(
    ("entry", "tool", "named"),
    [
        ("pods_list", "pods_list", True),
        ("pods_list", "pods_list_all", False),
        ("pods_list", "Pods_list", False),
        ("pods_*", "pods_list", True),
        ("pods_*", "pods_", True),
        ("pods_*", "pod_list", False),
        ("*_list", "pods_list", True),
        ("*_list", "pods_list_all", False),
        ("*", "anything", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-c-b-c", True),
        ("a*b*c", "abbc", True),
        ("a*bb*b", "abb", False),
        ("pods.list", "podsxlist", False),
        ("**", "x", True),
    ],
)
def test_an_entry_names_a_tool(entry: str, tool: str, named: bool) -> None:
    assert names([entry], tool) is named


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=8))
def test_an_entry_names_what_a_shell_would(entry: str, tool: str) -> None:
    assert names([entry], tool) is bool(re.fullmatch(entry.replace("*", ".*"), tool))


def test_a_hostile_entry_takes_no_time() -> None:
    began = time.process_time()
    assert not names(["a*" * 63 + "b"] * 256, "a" * 128)
    assert time.process_time() - began < 10


def planned(*objects: AnyResource, **brought: object) -> ServerPlan:
    made = plan_of([provider(), chain(), *objects], alert(**brought))
    return made.stages[0].agents[0].servers[0]


@pytest.mark.parametrize(
    ("of_server", "of_agent", "held"),
    [
        (None, None, READ),
        ("All", None, READ),
        (None, "All", READ),
        ("Approve", None, READ),
        ("Approve", "All", APPROVE),
        ("All", "Approve", APPROVE),
        ("All", "All", ALL),
    ],
)
def test_server_and_agent_must_both_say_all(of_server: str | None, of_agent: str | None, held: ToolPolicy) -> None:
    objects = (agent(mcpServers=selected("kube"), toolPolicy=of_agent), server(toolPolicy=of_server))
    assert planned(*objects).policy is held
    assert planned(*objects, mcpServers=selected("kube")).policy is held


def test_the_lists_of_a_server_and_its_word_for_itself_are_planned() -> None:
    lists = {"readOnly": ["get_*"], "destructive": ["delete_*"]}
    made = planned(agent(mcpServers=selected("kube")), server(tools=lists, trustAnnotations=True))
    assert (made.read_only, made.destructive, made.trust_annotations) == (("get_*",), ("delete_*",), True)
    assert planned(agent(mcpServers=selected("kube")), server()).trust_annotations is False


def test_a_policy_of_a_newer_version_permits_reading_only() -> None:
    assert stricter("All", "Perhaps") is READ
    assert (looser(READ, APPROVE), looser(ALL, APPROVE)) == (APPROVE, ALL)


@pytest.mark.parametrize(
    ("policy", "reads", "waits"),
    [(READ, True, False), (APPROVE, True, False), (APPROVE, False, True), (ALL, False, False)],
)
def test_people_decide_about_what_may_change_and_always_about_what_destroys(
    policy: ToolPolicy, reads: bool, waits: bool
) -> None:
    assert waits_for_people(policy, (), "drop", reads=reads) is waits
    assert waits_for_people(policy, ("dr*",), "drop", reads=reads)


def test_replicas_and_a_stages_own_servers_have_the_policy_of_their_agent() -> None:
    several = stage("triage", replicas=3, mcpServers=selected("kube"))
    made = plan_of([provider(), server(), agent(toolPolicy="ReadOnly"), chain(stages=[several])])
    assert [one.servers[0].policy for one in made.stages[0].agents] == [READ] * 3


@pytest.mark.parametrize(
    ("first", "second", "of_chat", "held"),
    [
        ("All", "ReadOnly", "All", ALL),
        ("Approve", "ReadOnly", "All", APPROVE),
        ("All", "Approve", "All", ALL),
        ("ReadOnly", "ReadOnly", "All", READ),
        ("All", "All", None, READ),
        ("All", "All", "ReadOnly", READ),
    ],
)
def test_who_answers_questions_may_do_no_more_than_one_of_the_agents(
    first: str, second: str, of_chat: str | None, held: ToolPolicy
) -> None:
    members = [agent(name, mcpServers=selected("kube"), toolPolicy=p) for name, p in (("a", first), ("b", second))]
    chat = agent("answers", toolPolicy=of_chat)
    made = plan_of([provider(), server(), *members, chat, chain(stages=[stage("a", "b")], chat={"agent": "answers"})])
    assert made.chat is not None and made.chat.servers[0].policy is held


def test_the_built_in_agent_for_questions_only_reads() -> None:
    made = plan_of([provider(), server(), agent(mcpServers=selected("kube")), chain()])
    assert made.chat is not None and made.chat.servers[0].policy is READ


def told(of: AnyResource, *others: AnyResource) -> dict[str, str]:
    return {
        error.field.removeprefix("spec."): error.message
        for error in check_references(of, ResourceCatalog([of, *others]))
    }


def test_a_server_of_which_nobody_may_have_a_tool_is_not_ready_and_says_what_to_set() -> None:
    found = told(server(toolPolicy=None))
    assert list(found) == ["toolPolicy"]
    for field in ("spec.tools.readOnly", "spec.trustAnnotations: true", "toolPolicy: Approve or All"):
        assert field in found["toolPolicy"]
    assert list(told(server(toolPolicy="ReadOnly", tools={"readOnly": ["get"], "deny": ["g*"]}))) == ["toolPolicy"]


@pytest.mark.parametrize("spec", [{"tools": {"readOnly": ["get"]}}, {"trustAnnotations": True}, {"toolPolicy": "All"}])
def test_each_of_the_three_ways_makes_it_ready(spec: dict[str, object]) -> None:
    assert told(server(**{"toolPolicy": None, **spec})) == {}


def test_a_tool_that_is_said_to_read_and_to_destroy_is_a_mistake() -> None:
    assert list(told(server(tools={"readOnly": ["a", "b"], "destructive": ["b"]}))) == ["tools.readOnly[1]"]


def test_lists_that_leave_nothing_are_a_mistake() -> None:
    assert list(told(server(tools={"allow": ["pods_list", "pods_*"], "deny": ["pods_*"]}))) == ["tools.deny"]
    assert told(server(tools={"allow": ["pods_*"], "deny": ["pods_delete"]})) == {}


READS = {"toolPolicy": "ReadOnly", "tools": {"readOnly": ["get_*"], "destructive": ["get_rid"]}}


def choosing(*tools: str, **spec: object) -> AnyResource:
    return agent(mcpServers=[{"name": "kube", "tools": list(tools)}], **spec)


def test_an_agent_that_chooses_a_tool_it_cannot_have_is_not_ready() -> None:
    found = told(choosing("get_pods", "get_rid", "scale"), server(**READS))
    (message,) = found.values()
    assert list(found) == ["mcpServers[0].tools"]
    assert "get_rid, scale" in message and "its toolPolicy is ReadOnly" in message
    assert "the agent's toolPolicy" in told(choosing("scale", toolPolicy="ReadOnly"), server()).popitem()[1]


def test_an_agent_may_choose_what_it_can_have_or_what_the_server_may_say_of_itself() -> None:
    assert told(choosing("get_pods"), server(**READS)) == {}
    assert told(choosing("scale"), server()) == {}
    assert told(choosing("anything"), server(toolPolicy="ReadOnly", trustAnnotations=True)) == {}
