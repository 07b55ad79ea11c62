"""Tool names as models and providers write them: one tool, or none."""

import pytest

from for_each import for_each
from tarsy.engine.strategies.react import Kind, parse_react
from tarsy.llm import ToolDefinition
from tarsy.llm.tool_names import encode_tool_name

LONG = "kubernetes.a_tool_with_a_name_that_is_far_too_long_for_every_provider_there_is_today"
TOOLS = tuple(
    ToolDefinition(name, "")
    for name in (
        "k8s.get_pods",
        "k8s.delete_pod",
        "k8s.set_quota",
        "prod-1.status",
        "east.logs",
        "west.logs",
        "prom.query-range",
        "git.read/file",
        "prom.rate",
        "prom.race",
        LONG,
    )
)


def named(name: str, tools: tuple[ToolDefinition, ...] = TOOLS) -> str | None:
    parsed = parse_react(f"Action: {name}\nAction Input: {{}}", tools)
    return parsed.tool if parsed.kind is Kind.TOOL_CALL else None


@for_each(
    ("written", "tool"),
    [
        ("k8s.get_pods", "k8s.get_pods"),
        ('"k8s.get_pods"', "k8s.get_pods"),
        ("'k8s.get_pods'", "k8s.get_pods"),
        ("`k8s.get_pods`", "k8s.get_pods"),
        ("**k8s.get_pods**", "k8s.get_pods"),
        ("[k8s.get_pods]", "k8s.get_pods"),
        ("<k8s.get_pods>", "k8s.get_pods"),
        ("k8s.get_pods.", "k8s.get_pods"),
        ("k8s.get_pods()", "k8s.get_pods"),
        ("k8s.get_pods (lists the pods)", "k8s.get_pods"),
        ("k8s.get_pods to list the pods", "k8s.get_pods"),
        ("Use the k8s.get_pods tool", "k8s.get_pods"),
        ("k8s__get_pods", "k8s.get_pods"),
        ("k8s_get_pods", "k8s.get_pods"),
        ("k8s/get_pods", "k8s.get_pods"),
        ("K8S.Get_Pods", "k8s.get_pods"),
        ("k8s.getPods", "k8s.get_pods"),
        ("k8s.get-pods", "k8s.get_pods"),
        ("functions.k8s.get_pods", "k8s.get_pods"),
        ("functions.k8s__get_pods", "k8s.get_pods"),
        ("default_api.k8s__get_pods", "k8s.get_pods"),
        ("mcp__k8s__get_pods", "k8s.get_pods"),
        ("functions::k8s.get_pods", "k8s.get_pods"),
        ("get_pods", "k8s.get_pods"),
        ("functions.get_pods", "k8s.get_pods"),
        ("k8s.get_pod", "k8s.get_pods"),
        ("k8s.delete_pods", "k8s.delete_pod"),
        ("k8s.get_posd", "k8s.get_pods"),
        ("prom.query_range", "prom.query-range"),
        ("git.read/file", "git.read/file"),
        (encode_tool_name(LONG), LONG),
        (encode_tool_name("git.read/file"), "git.read/file"),
    ],
)
def test_a_mangled_name_is_the_one_tool_it_can_be(written: str, tool: str) -> None:
    assert named(written) == tool


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("logs", "two servers have it"),
        ("prom.rase", "two tools are as near"),
        ("k8s.get_quota", "the first letter of a word is never forgiven: get is not set"),
        ("prod-2.status", "digits are never forgiven"),
        ("prod.status", "a server that was named is never exchanged"),
        ("west.get_pods", "a server that was named is never exchanged"),
        ("k8s.get", "a word is missing"),
        ("k8s", "only the server"),
        ("pods", "only a word of it"),
    ],
)
def test_a_name_that_is_not_one_tool_is_unknown(written: str, why: str) -> None:
    assert named(written) is None, why


def test_an_ambiguous_name_is_told_its_candidates() -> None:
    feedback = parse_react("Action: logs\nAction Input: {}", TOOLS).feedback

    assert "Did you mean east.logs or west.logs?" in feedback


def test_the_exact_name_beats_every_other_reading() -> None:
    tools = (ToolDefinition("functions.get", ""), ToolDefinition("a.get", ""), ToolDefinition("A.get", ""))

    assert named("functions.get", tools) == "functions.get"
    assert named("A.get", tools) == "A.get"


@pytest.mark.parametrize(
    ("written", "tool"),
    [
        ("k8s.get_pods", "k8s.get_pods"),
        ("some-server.some-tool", "some-server.some-tool"),
        ("a.b.c", "a.b.c"),
        ("k8s__get_pods", "k8s.get_pods"),
        ("functions.k8s.get_pods", "k8s.get_pods"),
        ("`k8s.get_pods`", "k8s.get_pods"),
        ("get_pods", None),
        ("look around", None),
    ],
)
def test_without_tools_every_well_formed_name_is_one(written: str, tool: str | None) -> None:
    assert named(written, ()) == tool


OFFERED = (
    ToolDefinition("kubernetes.get_logs", ""),
    ToolDefinition("kubernetes.list_pods", ""),
    ToolDefinition("server.top", ""),
)


@pytest.mark.parametrize(
    "written",
    [
        "server.kubernetes.get_logs",
        "`server.kubernetes.get_logs`",
        "servers.kubernetes.get_logs",
        "Server.kubernetes.get_logs",
        "server.get_logs",
        "kubernetes.get_logs()",
        "kubernetes.get_logs({})",
        "`kubernetes.get_logs()`",
        '"kubernetes.get_logs"',
        "server.tool: kubernetes.get_logs",
        "tool.kubernetes.get_logs",
    ],
)
def test_what_a_model_copied_around_a_name_is_stripped(written: str) -> None:
    assert named(written, OFFERED) == "kubernetes.get_logs"


@pytest.mark.parametrize(
    ("written", "tool"), [("server.top", "server.top"), ("server.tool", None), ("server.list", None)]
)
def test_a_server_that_is_called_so_keeps_its_name_and_no_tool_is_guessed(written: str, tool: str | None) -> None:
    assert named(written, OFFERED) == tool
