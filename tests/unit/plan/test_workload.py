"""Where the tool servers are that the operator runs: a plan names them, a run knows the rest."""

from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.mcp_server import server_plan_of
from tarsy.plan.check import secrets
from tarsy.plan.model import HttpTransport, ServerPlan, WorkloadTransport
from tarsy.plan.workload import reached, why_not_lent, workload_name
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.mcp_server import MAX_NAME, MCPServer
from unit.controllers.builders import raw

RUN = UUID("0123456789abcdef0123456789abcdef")


def planned(scope: str, **more: Any) -> ServerPlan:
    run = {"image": "tools:1", "command": ["x"], "scope": scope, **more}
    return server_plan_of(parse_as(MCPServer, raw("MCPServer", "tools", {"transport": {"type": "stdio"}, "run": run})))


@pytest.mark.parametrize(("scope", "name"), [("Shared", "mcp-tools"), ("PerRun", "mcp-tools-0123456789abcdef")])
def test_a_workload_is_reached_at_its_service_with_its_token(scope: str, name: str) -> None:
    plan = planned(scope)
    assert plan.transport == WorkloadTransport(namespace="team-a", server="tools", per_run=scope == "PerRun")
    transport = reached(plan, RUN).transport
    assert isinstance(transport, HttpTransport) and transport.bearer_token is not None
    assert transport.url == f"http://{name}.team-a.svc:8080/mcp"
    token = transport.bearer_token.secret
    assert token is not None and (token.namespace, token.name, token.key) == ("team-a", name, "token")


def test_where_services_are_may_be_said() -> None:
    transport = reached(planned("Shared"), address=lambda name, _: f"http://127.0.0.1:1/{name}").transport
    assert isinstance(transport, HttpTransport) and transport.url == "http://127.0.0.1:1/mcp-tools/mcp"


def test_any_other_server_is_reached_as_it_says() -> None:
    plan = server_plan_of(
        parse_as(MCPServer, raw("MCPServer", "web", {"transport": {"type": "http", "http": {"url": "http://web/mcp"}}}))
    )
    assert reached(plan, RUN) is plan


def test_the_secrets_of_its_environment_are_looked_at_like_all_others() -> None:
    env = [{"name": "A", "value": "b"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}]
    spec = {"transport": {"type": "stdio"}, "run": {"image": "i", "command": ["x"], "env": env}}
    ((key, at),) = secrets(parse_as(MCPServer, raw("MCPServer", "tools", spec)))
    assert (key.namespace, key.name, key.key) == ("team-a", "keys", "api")
    assert str(at.error("").field) == "spec.run.env[1].valueFrom.secretKeyRef"


def test_a_workload_that_acts_as_an_account_is_one_for_each_run_and_account() -> None:
    plan = planned("PerRun", kubeconfig=True)
    urls = set()
    for account in ("viewer", "other"):
        transport = reached(plan.model_copy(update={"account": account}), RUN).transport
        assert isinstance(transport, HttpTransport) and transport.bearer_token is not None
        assert transport.bearer_token.secret is not None
        assert transport.bearer_token.secret.name == workload_name("tools", RUN, account)
        urls.add(transport.url)
    assert len(urls) == 2


def test_an_account_that_a_workload_does_not_ask_for_changes_nothing() -> None:
    plan = planned("PerRun").model_copy(update={"account": "viewer"})
    assert reached(plan, RUN) == reached(planned("PerRun"), RUN).model_copy(update={"account": "viewer"})


def test_names_fit_a_label_whatever_server_and_account_are_called() -> None:
    long = "x" * MAX_NAME
    names = {workload_name(long, run, account) for run in (RUN, UUID(int=1)) for account in (None, "a", "a" * 253)}
    assert len(names) == 6 and max(map(len, names)) <= 63


@pytest.mark.parametrize("namespace", ["payments", "tarsy-library"])
def test_tokens_are_lent_to_the_namespace_of_the_run_and_to_the_library(namespace: str) -> None:
    assert why_not_lent("tools", namespace, "payments", "tarsy-library") is None


def test_tokens_are_lent_to_no_other_namespace_and_the_sentence_says_what_to_do() -> None:
    why = why_not_lent("tools", "elsewhere", "payments", "tarsy-library")
    assert why is not None and "MCPServer elsewhere/tools" in why
    assert "payments and in the library namespace tarsy-library only" in why and "--library-namespace" in why


def test_what_a_run_lacks_is_in_no_plan() -> None:
    plan = planned("PerRun", kubeconfig=True)
    told = plan.model_copy(update={"transport": plan.transport.model_copy(update={"missing": "no account"})})
    assert told.model_dump_json() == plan.model_dump_json() and "missing" not in plan.model_dump_json()
