"""Stops, restores and overloads a real API server under the operator: it dies with its database, all write at once."""

import asyncio
import contextlib
import itertools
import re
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.timeline import EventType

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.real_only("etcd, processes to kill, and counts of requests"),
]
OUTAGE_SECONDS = 10.0
SECRET_BELIEVED_SECONDS = 6.0
"""Longer than a Secret is believed without asking the API again (`tarsy.kube.credentials`)."""


def agent(gate: str) -> str:
    return f"""
    - text: I look.
      gate: {gate}-1
      calls: [{{name: tools.look, arguments: {{what: {gate}}}}}]
    - text: I write.
      gate: {gate}-2
      calls: [{{name: tools.write, arguments: {{what: {gate}}}}}]
    - text: {ANSWER}
      gate: {gate}-3
"""


NAMES = ("during", "next", "across", "unseen")
SCRIPT = "agents:\n" + "".join(f"  {name}:{agent(name)}" for name in NAMES)


@contextlib.asynccontextmanager
async def power_cut(tenant: Tenant) -> AsyncIterator[None]:
    """kube-apiserver and etcd get SIGKILL and stay away for `OUTAGE_SECONDS` at least, or as long as the body takes."""
    api = tenant.machine.api
    await asyncio.to_thread(api.kill)
    back = time.monotonic() + OUTAGE_SECONDS
    try:
        yield
        assert api.pids == ()
        await asyncio.sleep(max(0.0, back - time.monotonic()))
    finally:
        await asyncio.to_thread(api.recover)


def turns(tenant: Tenant, name: str) -> list[int]:
    return [request.turn for request in tenant.model.journal.requests if request.agent == name]


async def asked(tenant: Tenant, name: str, turn: int) -> None:
    """Waits until the model is asked for a turn of an agent."""
    try:
        await tenant.model.journal.wait_for(lambda _: turn in turns(tenant, name), 120)
    except TimeoutError:
        log = tenant.machine.log.read_text(errors="replace")[-3000:]
        raise AssertionError(f"{name} did not come to turn {turn}; the operator's log ends:\n{log}") from None


async def assert_done_once(tenant: Tenant, name: str, identity: UUID) -> None:
    """The run succeeded, in the world, the record and the cluster, with no step repeated and none missing."""
    inv = await tenant.finished(name)
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["attempt"] == 1
    assert turns(tenant, name) == [0, 1, 2]
    assert (inv["status"]["usage"]["modelCalls"], inv["status"]["usage"]["toolCalls"]) == (3, 2)
    assert [row["state"] for row in await tenant.model_calls(identity)] == ["completed"] * 3
    calls = [(row["tool"], row["state"]) for row in await tenant.mcp_calls(identity)]
    assert calls == [("look", "completed"), ("write", "completed")]
    timeline = await tenant.reads.timeline(identity)
    assert [event for event in timeline if event.status.value == "streaming"] == []
    said = [event.content for event in timeline if event.type is EventType.LLM_RESPONSE]
    assert said == ["I look.", "I write."]
    assert [event.type for event in timeline].count(EventType.FINAL_ANALYSIS) == 1


async def told(tenant: Tenant) -> Counter[tuple[str, str]]:
    """Kubernetes Events: how many of a reason an Investigation has."""
    found = await tenant.client.list("Event", tenant.namespace)
    objects = [(event["involvedObject"], event["reason"]) for event in found]
    return Counter((about["name"], reason) for about, reason in objects if about["kind"] == "Investigation")


async def test_kill_of_api_server_and_etcd_for_ten_seconds_stops_no_run(tenant: Tenant) -> None:
    model = await tenant.use_model(SCRIPT)
    await tenant.use_tools()
    for name in NAMES:
        await tenant.use_agent(name, "tools")
        # Two that share one place: the second one begins when the first has ended, which is while nobody can be told.
        limit: dict[str, Any] = {"maxConcurrent": 1} if name == "during" else {}
        await tenant.use_chain([name], name=name, **limit)
    identities = {name: await tenant.investigate(name, chain=name) for name in ("during", "across")}
    for name in identities:
        await asked(tenant, name, 0)
    await tenant.use_chain(["next"], name="during", maxConcurrent=1)
    await tenant.noticed("Chain", "during")
    identities["next"] = await tenant.investigate("next", chain="during")
    await tenant.phase("Queued", "next")
    identities["unseen"] = await tenant.investigate("unseen", chain="unseen")

    async with power_cut(tenant):
        await asyncio.sleep(SECRET_BELIEVED_SECONDS)
        model.open_gate("during-1")
        await asked(tenant, "during", 1)
        for gate in ("during-2", "during-3", "next-1", "across-1"):
            model.open_gate(gate)
        await asked(tenant, "next", 1)
        await asked(tenant, "across", 1)
        assert tenant.tool_calls("look") == 3
        assert (await tenant.record(identities["during"])).state.finished

    for name in NAMES:
        for turn in (1, 2, 3):
            model.open_gate(f"{name}-{turn}")
    for name in NAMES:
        await assert_done_once(tenant, name, identities[name])
    assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (4, 4)
    await until("every end is told once", lambda: all_told(tenant))


async def all_told(tenant: Tenant) -> bool:
    events = await told(tenant)
    assert set(events.values()) == {1}, "an Event is told twice"
    return {name for name, reason in events if reason == "Succeeded"} == set(NAMES)


RUNS = 20
STORM_SCRIPT = f"""
first_token_ms: 700
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: I write.
      calls: [{{name: tools.write, arguments: {{what: note}}}}]
    - text: {ANSWER}
"""
WRONG = {"status": {"phase": "Queued", "finding": None, "conditions": []}}


class Storm:
    """Clients that write the same Investigations as fast as they can: metadata, status, all of it as they read it."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._ended = asyncio.Event()
        self._number = itertools.count(1)
        self.sent: Counter[str] = Counter()
        self.conflicts = 0

    async def rage(self, names: list[str], clients: int = 4) -> None:
        """Writes until `end`."""
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(self._write(names[number:] + names[:number]))

    def end(self) -> None:
        self._ended.set()

    async def _write(self, names: list[str]) -> None:
        space = self._tenant.namespace
        async with await KubeClient.load(self._tenant.machine.api.kubeconfig) as client:
            for name in itertools.cycle(names):
                if self._ended.is_set():
                    return
                n = next(self._number)
                mark = {"metadata": {"labels": {"storm": str(n)}, "annotations": {"storm": str(n)}}}
                wrong = {"status": {**WRONG["status"], "usage": {"totalTokens": n}}}
                self.sent["PATCH"] += 1
                await client.patch("Investigation", space, name, mark)
                self.sent["PATCH status"] += 1
                await client.patch("Investigation", space, name, wrong, subresource="status")
                there = await client.get("Investigation", space, name)
                there["metadata"]["labels"]["storm"] = f"{n}-again"
                self.sent["PUT"] += 1
                try:
                    await client.replace(there)
                except ApiError as error:
                    assert error.reason == "Conflict", error
                    self.conflicts += 1


async def writes(tenant: Tenant) -> Counter[str]:
    """Writing requests for Investigations that the API server has answered, whatever the answer: by verb."""
    api, way = tenant.machine.api, await tenant.client.connection()
    tls = ssl.create_default_context(cafile=way.ca_file)
    assert way.certificate_file is not None
    tls.load_cert_chain(way.certificate_file, way.key_file)
    async with aiohttp.ClientSession() as http, http.get(f"{api.url}/metrics", ssl=tls) as answer:
        text = await answer.text()
    found: Counter[str] = Counter()
    for line in re.finditer(r"^apiserver_request_total\{(.*)\} (\S+)$", text, re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line.group(1)))
        if labels["resource"] == "investigations" and labels["verb"] in ("PATCH", "PUT"):
            found[f"{labels['verb']} {labels['subresource']}".strip()] += round(float(line.group(2)))
    return found


async def test_storm_of_foreign_writes_hinders_no_run_and_no_status(tenant: Tenant) -> None:
    await tenant.simple(STORM_SCRIPT)
    names = [f"run-{number}" for number in range(RUNS)]
    before, started = await writes(tenant), time.monotonic()
    identities = {name: await tenant.investigate(name) for name in names}
    storm = Storm(tenant)
    async with asyncio.TaskGroup() as group:
        group.create_task(storm.rage(names))
        for name in names:
            await until(f"{name} has ended", lambda one=identities[name]: ended(tenant, one), 240)  # type: ignore[misc]
        took = time.monotonic() - started
        await asyncio.sleep(3)
        storm.end()
    seconds = time.monotonic() - started
    for name in names:
        await until(f"the status of {name} is right", lambda one=name: right(tenant, one), 120)  # type: ignore[misc]
    ours = await writes(tenant) - before - storm.sent
    print(
        f"\n{RUNS} runs {took:.1f} s; {seconds:.1f} s of storm {dict(storm.sent)}, {storm.conflicts} conflicts; {ours=}"
    )
    assert tenant.tool_calls("write") == RUNS
    assert ours["PATCH status"] <= RUNS * (seconds + 5), "one a second and run at most"
    assert ours["PATCH"] <= 2 * RUNS, "an acceptance is noted once"

    async def quiet() -> bool:
        before = await writes(tenant)
        await asyncio.sleep(3)
        return await writes(tenant) == before

    await until("nothing is written when nothing happens", quiet)
    await tenant.client.patch("Investigation", tenant.namespace, names[0], WRONG, subresource="status")
    await until("a status that was written over later is right", lambda: right(tenant, names[0]), 60)


async def ended(tenant: Tenant, identity: UUID) -> bool:
    record = await tenant.reads.record(identity)
    return record is not None and record.state.finished


async def right(tenant: Tenant, name: str) -> bool:
    """Whether an Investigation shows how it ended."""
    inv = await tenant.get(name)
    status = inv["status"]
    tokens = (await tenant.record(UUID(inv["metadata"]["uid"]))).usage.total_tokens
    return (
        condition(inv, "Succeeded") == "True"
        and status["phase"] == "Succeeded"
        and status.get("finding") is not None
        and status["usage"]["totalTokens"] == tokens
    )
