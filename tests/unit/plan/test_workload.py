"""Where the tool servers are that the operator runs: a plan names them, a run knows the rest."""

from uuid import UUID

import pytest

from tarsy.controllers.mcp_server import as_plan
from tarsy.plan.check import secrets
from tarsy.plan.model import HttpTransport, ServerPlan, WorkloadTransport
from tarsy.plan.workload import reached
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from unit.controllers.builders import raw

RUN = UUID("0123456789abcdef0123456789abcdef")


def planned(scope: str) -> ServerPlan:
    run = {"image": "tools:1", "command": ["x"], "scope": scope}
    return as_plan(parse_as(MCPServer, raw("MCPServer", "tools", {"transport": {"type": "stdio"}, "run": run})))


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
    plan = as_plan(
        parse_as(MCPServer, raw("MCPServer", "web", {"transport": {"type": "http", "http": {"url": "http://web/mcp"}}}))
    )
    assert reached(plan, RUN) is plan


def test_the_secrets_of_its_environment_are_looked_at_like_all_others() -> None:
    env = [{"name": "A", "value": "b"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}]
    spec = {"transport": {"type": "stdio"}, "run": {"image": "i", "command": ["x"], "env": env}}
    ((key, at),) = secrets(parse_as(MCPServer, raw("MCPServer", "tools", spec)))
    assert (key.namespace, key.name, key.key) == ("team-a", "keys", "api")
    assert str(at.error("").field) == "spec.run.env[1].valueFrom.secretKeyRef"
