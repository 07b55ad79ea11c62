"""SIGKILL of a worker around the gate of a call that people approve: sent at most once, whatever is killed where.

One investigation a point, and one kill for the points before the decision, one for those after it. Of each, what the
tool server was called, as it noted it itself, is compared with what the record says. Where no kill falls between the
statement that consumes the approval and the one that writes the answer, the call is sent exactly once.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import yaml

import rights
from chaos.fleet import Fleet, Member
from chaos.points import Gate, Points
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from policies import lift_approve, put_approve
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.kubeconfig import ChosenContext
from tarsy.kube.client import KubeClient
from tarsy.store.sealing.sealed_record import SealedRecord

pytestmark = [pytest.mark.newer_api, pytest.mark.timeout(1200)]


@dataclass(frozen=True, slots=True)
class Kill:
    """Where the worker dies, and how often the call is sent in all; `told`: the model learns the result."""

    gate: Gate | None
    commit: bool = False
    sent: int = 1
    told: bool = True


BEFORE = {
    "unasked": Kill(Gate.PEOPLE_ASKED),
    "asked": Kill(Gate.PEOPLE_ASKED, commit=True),
    "unparked": Kill(Gate.PARKED),
}
"""The question is not written, or is; the run is not parked yet."""
AFTER = {
    "unconsumed": Kill(Gate.TOOL_CALL_STARTED),
    "unsent": Kill(Gate.TOOL_CALL_STARTED, commit=True, sent=0, told=False),
    "calling": Kill(None, told=False),
    "unanswered": Kill(Gate.TOOL_CALL_FINISHED, told=False),
    "answered": Kill(Gate.TOOL_CALL_FINISHED, commit=True),
}
"""The approval is not consumed; consumed and not sent; sent; answered and not written; written."""
KILLS = BEFORE | AFTER
FINDER = "finder"


def script(*, acting: bool) -> str:
    """Every agent looks, proposes a call with what it saw, and concludes; one of them calls what does not answer.

    Where they are `acting`, another agent has found something before, and they end with the word that they acted.
    """
    look = {"text": "I look.", "calls": [{"name": "tools.look", "arguments": {"what": "cause"}}]}
    agents: dict[str, Any] = {FINDER: [look, {"text": json.loads(ANSWER)}]}
    for name in KILLS:
        call = {"name": "tools.wait" if name == "calling" else "tools.write", "arguments": {"what": name}}
        agents[name] = [
            {"text": "I look.", "calls": [{"name": "tools.look", "arguments": {"what": name}}]},
            {"text": "It helps, as @callId(tools.look) shows.", "calls": [call]},
            {"text": "It is done.\nYES" if acting else ANSWER},
        ]
    return yaml.safe_dump({"agents": agents})


@pytest.fixture
async def points(bare_tenant: Tenant) -> AsyncIterator[Points]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Points(connection)
    await gates.install(tuple(KILLS))
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


@pytest.fixture
async def anna(bare_tenant: Tenant) -> AsyncIterator[AggregatedClient]:
    """The plugin of somebody who may approve; rita may start runs. At the end the policy is gone."""
    tenant, namespace = bare_tenant, bare_tenant.namespace
    rules = {
        "rita": [{"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}],
        "anna": [
            {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "verbs": ["approve"]},
            {"apiGroups": ["tarsy.dev"], "resources": ["toolapprovals"], "verbs": ["get", "list", "patch"]},
        ],
    }
    for name, of in rules.items():
        bound = rights.binding(name, namespace, "Role", name, rights.user(name))
        await rights.put_rights(tenant.client, [rights.role(name, namespace, *of), bound])
    await put_approve(tenant.client)
    try:
        async with await KubeClient.load(tenant.machine.api.kubeconfig_for("anna")) as client:
            yield AggregatedClient(client, ChosenContext(None, "anna", namespace))
    finally:
        await lift_approve(tenant.client, namespace)


async def build(tenant: Tenant, *, acting: bool) -> None:
    await tenant.use_model(script(acting=acting))
    await tenant.use_tools(toolPolicy="Approve", tools={"readOnly": ["look"]})
    await tenant.use_agent(FINDER, "tools", strategy="langchain")
    for name in KILLS:
        await tenant.use_agent(name, "tools", strategy="langchain", toolPolicy="All")
        find = {"name": "find", "agents": [{"name": FINDER}]}
        act = {"name": "act", "kind": "Action", "agents": [{"name": name}]}
        await tenant.use_chain(name=name, stages=[find, act]) if acting else await tenant.use_chain([name], name=name)


async def next_worker(tenant: Tenant, fleet: Fleet) -> Member:
    """A worker with a place for every run, once the leases of dead ones are over."""
    await tenant.machine.lapse()
    return fleet.start("worker", *LONG_LEASE, "--places", str(len(KILLS)))


async def parked(tenant: Tenant, runs: dict[str, UUID], names: set[str]) -> None:
    async def look() -> bool:
        found = await tenant.rows("SELECT id FROM investigation WHERE parked_at IS NOT NULL")
        return {runs[name] for name in names} <= {row["id"] for row in found}

    await until(f"parked: {', '.join(sorted(names))}", look)


@pytest.mark.parametrize("acting", [False, True], ids=["investigating", "acting"])
async def test_kill_around_the_gate_sends_a_call_at_most_once(
    bare_tenant: Tenant, points: Points, fleet: Fleet, anna: AggregatedClient, acting: bool
) -> None:
    tenant = bare_tenant
    await build(tenant, acting=acting)
    fleet.controller()
    for name, kill in BEFORE.items():
        assert kill.gate is not None
        await points.close(name, kill.gate)
    author = {"username": "rita"}
    runs = {name: await tenant.investigate(name, chain=name, author=author) for name in KILLS}
    first = await next_worker(tenant, fleet)
    await parked(tenant, runs, set(AFTER))
    await at_their_points(points, BEFORE)
    await first.kill()
    await let_go(points, BEFORE)

    second = await next_worker(tenant, fleet)
    await parked(tenant, runs, set(KILLS))
    assert calls(tenant) == Counter(), "nothing is sent before people decide"
    for name, kill in AFTER.items():
        if kill.gate is not None:
            await points.close(name, kill.gate)
    await approve(tenant, anna)
    for name in BEFORE:
        assert condition(await tenant.finished(name), "Succeeded") == "True"
    await at_their_points(points, AFTER)
    await until("a call waits for its answer", lambda: is_called(tenant, "wait"))
    await second.kill()
    await let_go(points, AFTER)
    (tenant.folder / "gate").touch()
    await next_worker(tenant, fleet)

    sent: dict[str, int] = {}
    for name, kill in KILLS.items():
        inv = await tenant.finished(name)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        rows = [row for row in await tenant.mcp_calls(runs[name]) if row["tool"] in ("write", "wait")]
        sent[name] = sum(calls(tenant)[row] for row in {str(row["idempotency_key"]) for row in rows})
        results = [str(row["result"]) for row in rows if row["result"] is not None]
        assert len(results) == 1, f"{name}: {results}"
        assert (f"{rows[0]['tool']} saw {name}" in results[0]) == kill.told, f"{name}: {results}"
        if acting:
            assert inv["status"]["finding"]["summary"] == SUMMARY
            _, act = inv["status"]["stages"][:2]
            assert (act["kind"], act["acted"], act["modelSaysActed"]) == ("Action", "Yes", "Yes")
        for report in await SealedRecord(tenant.pool).check(runs[name]):
            assert report.flaws == [], "the record differs from its sealed form"
    print(f"\nkills 2, points {len(KILLS)}, calls sent of each: {sent}")
    assert sent == {name: kill.sent for name, kill in KILLS.items()}
    approvals = await tenant.rows(
        "SELECT state, consumed_attempt FROM tool_approval WHERE investigation = ANY($1)", list(runs.values())
    )
    assert [row["state"] for row in approvals] == ["consumed"] * len(KILLS)


async def at_their_points(points: Points, kills: dict[str, Kill]) -> None:
    for name, kill in kills.items():
        if (gate := kill.gate) is not None:

            async def stands(name: str = name, gate: Gate = gate) -> bool:
                return bool(await points.waiting(name, gate))

            await until(f"{name} stands at {gate}", stands)


async def let_go(points: Points, kills: dict[str, Kill]) -> None:
    for name, kill in kills.items():
        if kill.gate is not None:
            await points.let_go(name, kill.gate, commit=kill.commit)


async def approve(tenant: Tenant, anna: AggregatedClient) -> None:
    """Approves all that waits; what a worker asked that died before its question was on record is withdrawn first."""
    left: dict[str, Any] = {}

    async def all_asked() -> bool:
        left.clear()
        left.update({one.name: one for one in await anna.approvals(tenant.namespace, decided=False)})
        return len(left) == len(KILLS)

    await until("people are asked about every call", all_asked)
    for name in left:
        await anna.decide(await anna.approval(tenant.namespace, name), "Approve", None)


def calls(tenant: Tenant) -> Counter[str]:
    """How often a call that changes something was sent, by its idempotency key, as the tool server noted it."""
    file = tenant.folder / "calls"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return Counter(key for tool, key in lines if tool != "look")


async def is_called(tenant: Tenant, tool: str) -> bool:
    return tenant.tool_calls(tool) > 0
