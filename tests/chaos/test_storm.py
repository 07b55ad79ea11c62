"""A storm of alerts while operator, Postgres and API server are restarted: the ledger balances, to the last one.

Senders do as Alertmanager does: what is not answered with 2xx or 4xx is sent again until it is. Each incident comes
with repeats, bodies that are sent twice, and an end; others come too fast for their route, no route takes a few, and
one is no JSON. What became of each is known beforehand, and is compared with Postgres and with the cluster.
"""

import asyncio
import base64
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

import rights
from chaos.fleet import Fleet, Member
from chaos.test_postgres import restart_postgres
from e2e.tenant import Tenant
from e2e.waiting import until
from tarsy.cli.reports.ledger import show_ledger
from tarsy.kube.credentials import LABEL
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.objects import put

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.once("takes minutes; make chaos-storm API=real"),
]

SPREAD_SECONDS = 10.0
PASSWORD = "correct horse battery"
ONE_BY_ONE = 3
"""Incidents of the flood that are investigated one by one; the next one stands for all others."""


@dataclass
class Senders:
    """Two of them, one with a token and one with a password, and what they were answered."""

    session: aiohttp.ClientSession
    url: str
    headers: tuple[dict[str, str], ...]
    chance: random.Random
    tries: Counter[str] = field(default_factory=Counter)

    async def deliver(self, body: bytes, sender: int, source: str = "alertmanager") -> tuple[int, dict[str, Any]]:
        """Sends until it is taken, or refused for good; a third of all once more, as if the answer had been lost."""
        answers = [await self._until_answered(body, sender, source)]
        if self.chance.random() < 0.33:
            answers.append(await self._until_answered(body, sender, source))
        assert len({(status, json.dumps(said, sort_keys=True)) for status, said in answers}) == 1, answers
        return answers[0]

    async def _until_answered(self, body: bytes, sender: int, source: str) -> tuple[int, dict[str, Any]]:
        while True:
            try:
                async with self.session.post(
                    self.url.replace("alertmanager", source), data=body, headers=self.headers[sender]
                ) as answer:
                    self.tries[str(answer.status)] += 1
                    said = await answer.json()
                    if answer.status < 500:
                        return answer.status, said
                    assert answer.status != 503 or "Retry-After" in answer.headers
            except (aiohttp.ClientError, TimeoutError):
                self.tries["broken"] += 1
            await asyncio.sleep(self.chance.uniform(0.1, 1.0))


def group(name: str, *minutes: int, status: str = "firing", **labels: str) -> bytes:
    alerts = [
        {"status": status, "labels": {"alertname": "Down", **labels}, "startsAt": f"2026-01-01T12:{minute:02}:00Z"}
        for minute in minutes
    ]
    return json.dumps({"version": "4", "groupKey": name, "status": status, "alerts": alerts}).encode()


async def test_storm_with_restarts_of_everything_loses_no_alert(
    bare_tenant: Tenant, fleet: Fleet, full: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    tenant, count, rounds = bare_tenant, *((1000, 3) if full else (100, 1))
    incidents, flood = count // 4, count // 10
    unrouted = count - 1 - flood - 3 * incidents - incidents // 2
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    port = free_port()
    headers = await prepare(tenant)

    def operator() -> Member:
        return fleet.controller("--http-port", str(port))

    timeout = aiohttp.ClientTimeout(total=60)
    url = f"http://127.0.0.1:{port}/intake/v1/alertmanager?namespace={tenant.namespace}"
    expected: Counter[str] = Counter()
    async with aiohttp.ClientSession(timeout=timeout) as session:
        senders = Senders(session, url, headers, chance)

        async def incident(number: int) -> None:
            await asyncio.sleep(SPREAD_SECONDS * number / incidents)
            sender, name = number % 2, f"incident-{number}"
            steps = [("investigated", group(name, 0))]
            steps += [("folded", group(name, 0, minute)) for minute in (1, 2)]
            steps += [("resolved", group(name, 0, status="resolved"))] if number % 2 else []
            for fate, body in steps:
                status, said = await senders.deliver(body, sender)
                assert (status, said["fate"]) == (202 if fate == "investigated" else 200, fate)
                expected[fate] += 1
                await asyncio.sleep(chance.uniform(0.0, 1.0))

        async def drop(number: int) -> None:
            await asyncio.sleep(SPREAD_SECONDS * number / flood)
            _, said = await senders.deliver(group(f"drop-{number}", 0, flood="yes"), 0)
            expected[said["fate"]] += 1

        async def nobody_wants(number: int) -> None:
            _, said = await senders.deliver(json.dumps({"number": number}).encode(), 1, "json")
            assert (said["fate"], said["reason"]) == ("rejected", "NoRoute")
            expected["rejected"] += 1

        async def broken() -> None:
            assert (await senders.deliver(b"{", 0))[0] == 400
            expected["rejected"] += 1

        running = operator()
        async with asyncio.TaskGroup() as tasks:
            for number in range(incidents):
                tasks.create_task(incident(number))
            for number in range(flood):
                tasks.create_task(drop(number))
            for number in range(unrouted):
                tasks.create_task(nobody_wants(number))
            tasks.create_task(broken())
            for _ in range(rounds):
                running = await restart_everything(tenant, running, operator, chance)
    expected_of_flood = Counter(investigated=ONE_BY_ONE + 1, folded=flood - ONE_BY_ONE - 1)
    assert expected == Counter(
        investigated=incidents + expected_of_flood["investigated"],
        folded=2 * incidents + expected_of_flood["folded"],
        resolved=incidents // 2,
        rejected=unrouted + 1,
    )
    rows = await tenant.rows(
        "SELECT fate, count(*) FROM notification WHERE sender = ANY($1) GROUP BY fate", sender_names(tenant)
    )
    assert {row["fate"]: row["count"] for row in rows} == dict(expected)
    await every_incident_has_one_alert(tenant, incidents, flood)
    assert await show_ledger(tenant.machine.postgres.dsn, None, "forever", output="text") == 0
    print(f"notifications {sum(expected.values())} ({dict(expected)}), answers {dict(senders.tries)}")
    print(capsys.readouterr().out)


async def restart_everything(
    tenant: Tenant, running: Member, operator: Callable[[], Member], chance: random.Random
) -> Member:
    """Each is away for a while, one after the other; the operator that runs then."""
    api = tenant.machine.api

    async def restart_operator() -> None:
        nonlocal running
        await running.kill()
        running = operator()

    async def restart_api() -> None:
        await asyncio.to_thread(api.stop_apiserver)
        await asyncio.sleep(chance.uniform(0.2, 1.0))
        await asyncio.to_thread(api.start_apiserver)

    async def restart_database() -> None:
        await restart_postgres(tenant, crash=chance.random() < 0.5)

    steps: list[Callable[[], Awaitable[None]]] = [restart_operator, restart_api, restart_database]
    chance.shuffle(steps)
    for step in steps:
        await asyncio.sleep(chance.uniform(1.0, 3.0))
        await step()
    return running


async def every_incident_has_one_alert(tenant: Tenant, incidents: int, flood: int) -> None:
    """Each incident has its Alert, each Alert its Investigation, and on it stands what was counted."""

    async def owed() -> bool:
        found = await tenant.rows(
            "SELECT FROM incident WHERE namespace = $1 AND manifest IS NOT NULL", tenant.namespace
        )
        return not found

    await until("no Alert is owed", owed)
    rows = await tenant.rows("SELECT * FROM incident WHERE namespace = $1", tenant.namespace)
    own = {row["alert"]: row for row in rows if row["parent"] is None}
    assert (len(rows), len(own)) == (incidents + flood, incidents + ONE_BY_ONE + 1)
    assert {row["alert"] for row in rows} == own.keys()

    wrong: list[str] = []

    async def told() -> bool:
        alerts = {alert["metadata"]["name"]: alert for alert in await tenant.client.list("Alert", tenant.namespace)}
        assert alerts.keys() == own.keys()
        investigations = await tenant.client.list("Investigation", tenant.namespace)
        of = Counter(inv["spec"]["alertRef"]["name"] for inv in investigations)
        assert not set(of.values()) - {1}
        wrong[:] = [f"{name}: no Investigation" for name in own.keys() - of.keys()]
        for name, row in own.items():
            status = alerts[name].get("status", {})
            said = status.get("repeats", 0), status.get("folded", 0), "resolvedAt" in status
            if said != (row["repeats"], row["folded"], row["resolved_at"] is not None):
                wrong.append(f"{name}: {said} is not what {dict(row)} says")
        return not wrong

    try:
        await until("all is told", told, 300)
    except AssertionError as error:
        log = tenant.machine.log.read_text(errors="replace")[-5000:]
        raise AssertionError(f"{error}\n{len(wrong)} wrong: {wrong[:5]}\nthe operator's log ends:\n{log}") from None
    assert sum(row["repeats"] for row in own.values()) == 2 * incidents
    assert [row["folded"] for row in own.values() if row["storm"]] == [flood - ONE_BY_ONE - 1]

    async def counted() -> bool:
        routes = await tenant.client.list("AlertRoute", tenant.namespace)
        taken = {route["metadata"]["name"]: route.get("status", {}).get("matchedCount") for route in routes}
        return taken == {"all": 3 * incidents + incidents // 2, "flood": flood}

    await until("the routes tell what they took", counted)


def sender_names(tenant: Tenant) -> list[str]:
    return [f"system:serviceaccount:{tenant.namespace}:prometheus", f"{tenant.namespace}/alertmanager"]


async def prepare(tenant: Tenant) -> tuple[dict[str, str], ...]:
    """A chain, two routes, and two senders; their headers."""
    await tenant.use_model("agents: {agent: [{text: Nothing.}]}")
    await tenant.use_agent("agent")
    await tenant.use_chain(["agent"], alertTypes=["Down"])
    name, space = "prometheus", tenant.namespace
    rules = [
        {"apiGroups": ["tarsy.dev"], "resources": ["alerts"], "verbs": ["create"]},
        {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]},
    ]
    meta = {"name": name, "namespace": space}
    await put(tenant.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    bound = rights.binding(name, space, "Role", name, rights.account(name, space))
    await rights.put_rights(tenant.client, (rights.role(name, space, *rules), bound))
    secret = {"name": "intake", "namespace": space, "labels": {LABEL: "true"}}
    data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
    await put(tenant.client, {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": data})
    basic = {"username": "alertmanager", "passwordSecretRef": {"name": "intake", "key": "password"}}
    auth = {"basic": basic, "serviceAccountName": name}
    alerts_only = {"name": "__source__", "value": "alertmanager"}
    await tenant.put(
        "AlertRoute", "all", {"auth": auth, "matchers": [alerts_only], "storm": {"alerts": 10_000, "seconds": 1}}
    )
    matchers = [alerts_only, {"name": "flood", "value": "yes"}]
    await tenant.put("AlertRoute", "flood", {"matchers": matchers, "storm": {"alerts": ONE_BY_ONE, "seconds": 3600}})
    token = await tenant.client.create_token(space, name)
    basic_auth = aiohttp.encode_basic_auth("alertmanager", PASSWORD)
    return {"Authorization": f"Bearer {token}"}, {"Authorization": basic_auth}
