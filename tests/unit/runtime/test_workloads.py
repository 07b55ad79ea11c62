"""Workloads of the cluster, as a run opens them: who is missing, and that nobody waits for who will not come."""

import asyncio
from uuid import UUID

import pytest

from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.service_account_auth import NO_TOKENS
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import ObjectRef, ServerPlan, Value, WorkloadTransport
from tarsy.runtime.workloads import Check, RunToolboxes

RUN = UUID("11111111-2222-4333-8444-555555555555")


async def resolve(value: Value) -> str:
    raise AssertionError("nobody is asked")


def acting(account: str | None = "viewer") -> ServerPlan:
    transport = WorkloadTransport(namespace="payments", server="kube", per_run=True, kubeconfig=True)
    ref = ObjectRef(kind="MCPServer", namespace="payments", name="kube", uid="u")
    return ServerPlan(ref=ref, name="kube", transport=transport, account=account)


def refusing(sentence: str) -> Check:
    async def check(workload: WorkloadTransport, account: str | None) -> None:
        raise OpenFailed(f"{sentence}: {workload.server} as {account}")

    return check


async def missing(boxes: RunToolboxes, *servers: ServerPlan) -> dict[str, str]:
    async with asyncio.timeout(60), boxes.open(servers) as box:
        assert box.tools == ()
        return dict(box.unavailable)


@pytest.mark.parametrize("account", ["viewer", None])
async def test_server_that_cannot_act_is_missing_at_once_with_the_reason(account: str | None) -> None:
    boxes = RunToolboxes(McpToolboxes(resolve, mask=str), RUN, check=refusing("no token"), wait_seconds=3600)
    assert await missing(boxes, acting(account)) == {"kube": f"no token: kube as {account}"}


async def test_where_nobody_gives_tokens_no_workload_acts_as_anybody() -> None:
    boxes = RunToolboxes(McpToolboxes(resolve, mask=str), RUN, wait_seconds=3600)
    assert await missing(boxes, acting()) == {"kube": NO_TOKENS}
