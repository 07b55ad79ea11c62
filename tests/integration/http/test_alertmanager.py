"""Tests the intake with a real Prometheus and real Alertmanagers: what they send, how often, and what becomes of it.

Every metric is exported by the test; a rule fires on each while it is above zero.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.waiting import until
from integration.http.door import SENDER, Door, open_intake
from integration.http.relay import open_relay
from tarsy.cli.reports.ledger import account_of
from tarsy.store.intake import Intake
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress
from tarsy_dev.monitoring.binaries import MonitoringBinaries, acquire_monitoring
from tarsy_dev.monitoring.exporter import Exporter
from tarsy_dev.monitoring.servers import (
    AlertmanagerTimes,
    MonitoringServer,
    Receiver,
    running_alertmanager,
    running_prometheus,
)

pytestmark = [
    pytest.mark.heavy("starts Prometheus and Alertmanager; test_intake.py shows the same with bodies of its own"),
    pytest.mark.once("what Alertmanager sends has nothing to do with the API server"),
]
DISK, NODE, PROBE = "DiskFull", "NodeDown", "ProbeFailed"
RULES = [{"alert": name, "expr": f"{name} > 0", "labels": {"severity": "warning"}} for name in (DISK, NODE, PROBE)]
NODE_HIDES_DISK = {"source_matchers": [f"alertname={NODE}"], "target_matchers": [f"alertname={DISK}"]}
REPEATING = AlertmanagerTimes(repeat_interval="1s")


@pytest.fixture(scope="module")
def binaries() -> MonitoringBinaries:
    try:
        return acquire_monitoring(BuildProgress())
    except LocalKubernetesError as error:
        pytest.skip(f"no Prometheus and Alertmanager: {error}")


@dataclass
class Pipeline:
    """All from the metric to the Alert."""

    door: Door
    exporter: Exporter
    prometheus: MonitoringServer
    alertmanagers: list[MonitoringServer]

    def fires(self, name: str, value: float = 1, **labels: str) -> None:
        self.exporter.set(name, labels, value)

    def ends(self, name: str, **labels: str) -> None:
        self.fires(name, 0, **labels)

    async def tells(self, name: str, begun: datetime, ends: datetime) -> None:
        """Tells the first Alertmanager of an alert, as a Prometheus does whose clock may be wrong."""
        labels = {"alertname": name, "severity": "warning"}
        alert = {"labels": labels, "startsAt": begun.isoformat(), "endsAt": ends.isoformat()}
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            await session.post(f"{self.alertmanagers[0].url}/api/v2/alerts", json=[alert])

    async def alerts(self, name: str) -> list[str]:
        """The names of the Alerts of a type."""
        found = await self.door.alerts()
        return [one["metadata"]["name"] for one in found if one["spec"]["alertType"] == name]

    async def arrived(self, name: str, count: int = 1) -> list[str]:
        async def look() -> list[str]:
            found = await self.alerts(name)
            return found if len(found) >= count else []

        return await until(f"{count} alerts {name} arrived", look, 60)  # type: ignore[no-any-return]

    async def account(self) -> dict[str, Any]:
        """What `tarsy ledger` says; it always balances."""
        account = account_of(*await Intake(self.door.pool).ledger(None))
        assert account["balances"] and not account["openedTwice"], account
        return account

    async def counted(self, **least: int) -> dict[str, Any]:
        """The ledger once it has at least so many of each."""

        async def look() -> dict[str, Any] | None:
            account = await self.account()
            return account if all(account[fate] >= count for fate, count in least.items()) else None

        return await until(f"the ledger has {least}", look, 60)  # type: ignore[no-any-return]

    async def states(self, name: str) -> Counter[str]:
        """How many alerts of a name the first Alertmanager has, by their state there."""
        found = await self.alertmanagers[0].get("/api/v2/alerts", filter=f'alertname="{name}"')
        return Counter(str(one["status"]["state"]) for one in found)

    async def suppressed(self, name: str) -> None:
        async def look() -> bool:
            return (await self.states(name))["suppressed"] == 1

        await until(f"Alertmanager suppresses {name}", look, 60)


class Start:
    """Starts a pipeline with so many Alertmanagers, which know nothing of each other."""

    def __init__(self, stack: contextlib.AsyncExitStack, door: Door, binaries: MonitoringBinaries, folder: Path):
        self._stack, self._door, self._binaries, self._folder = stack, door, binaries, folder

    async def __call__(
        self,
        *,
        alertmanagers: int = 1,
        times: AlertmanagerTimes | None = None,
        inhibit: tuple[dict[str, Any], ...] = (),
        through: str | None = None,
        resend_delay: str = "2s",
    ) -> Pipeline:
        enter, door = self._stack.enter_async_context, self._door
        await door.route()
        token = self._folder / "token"
        token.write_text(await door.kube.create_token(door.namespace, SENDER))
        receiver = Receiver(door.address if through is None else door.address_at(through), token)
        started = [
            await enter(
                running_alertmanager(
                    self._binaries, self._folder / f"alertmanager-{n}", receiver, times=times, inhibit_rules=inhibit
                )
            )
            for n in range(alertmanagers)
        ]
        exporter = await enter(Exporter())
        prometheus = await enter(
            running_prometheus(
                self._binaries,
                self._folder / "prometheus",
                targets={"shop": exporter.target},
                rules=RULES,
                alertmanagers=started,
                resend_delay=resend_delay,
            )
        )
        return Pipeline(door, exporter, prometheus, started)


@pytest.fixture
async def start(door: Door, binaries: MonitoringBinaries, tmp_path: Path) -> AsyncIterator[Start]:
    async with contextlib.AsyncExitStack() as stack:
        yield Start(stack, door, binaries, tmp_path)


async def test_a_group_is_one_alert_whoever_joins_it_later(start: Start) -> None:
    pipeline = await start()
    pipeline.fires(DISK, disk="a")
    pipeline.fires(DISK, disk="b")
    (first,) = await pipeline.arrived(DISK)
    pipeline.fires(DISK, disk="c")
    account = await pipeline.counted(folded=1)
    assert await pipeline.alerts(DISK) == [first]
    assert account["investigated"] == 1


async def test_repeats_are_no_other_alert(start: Start) -> None:
    pipeline = await start(times=REPEATING)
    pipeline.fires(DISK)
    (first,) = await pipeline.arrived(DISK)
    account = await pipeline.counted(resends=2)
    assert await pipeline.alerts(DISK) == [first]
    assert account["investigated"] == 1 and account["rejected"] == 0


async def test_the_end_is_recorded_and_the_next_time_is_another_alert(start: Start) -> None:
    pipeline = await start()
    pipeline.fires(DISK)
    (first,) = await pipeline.arrived(DISK)
    pipeline.ends(DISK)
    account = await pipeline.counted(resolved=1)
    assert (account["investigated"], await pipeline.alerts(DISK)) == (1, [first])
    pipeline.fires(DISK)
    assert first in await pipeline.arrived(DISK, count=2)


async def test_a_silenced_alert_is_not_sent(start: Start) -> None:
    pipeline = await start()
    begin = datetime.now(UTC)
    silence = {
        "matchers": [{"name": "alertname", "value": DISK, "isRegex": False, "isEqual": True}],
        "startsAt": begin.isoformat(),
        "endsAt": (begin + timedelta(hours=1)).isoformat(),
        "createdBy": "somebody",
        "comment": "the disk is being replaced",
    }
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        await session.post(f"{pipeline.alertmanagers[0].url}/api/v2/silences", json=silence)
    pipeline.fires(DISK)
    await pipeline.suppressed(DISK)
    # It was there a group_wait before this one, which arrives.
    pipeline.fires(PROBE)
    await pipeline.arrived(PROBE)
    assert await pipeline.alerts(DISK) == []
    assert (await pipeline.account())["received"] == 1


async def test_an_alert_that_another_one_explains_is_not_sent(start: Start) -> None:
    pipeline = await start(inhibit=(NODE_HIDES_DISK,))
    pipeline.fires(NODE)
    await pipeline.arrived(NODE)
    pipeline.fires(DISK)
    await pipeline.suppressed(DISK)
    pipeline.fires(PROBE)
    await pipeline.arrived(PROBE)
    assert await pipeline.alerts(DISK) == []


async def test_a_pair_that_sends_twice_opens_and_ends_one_incident(start: Start) -> None:
    pipeline = await start(alertmanagers=2)
    pipeline.fires(DISK)
    (first,) = await pipeline.arrived(DISK)

    async def told_twice() -> bool:
        account = await pipeline.account()
        return int(account["folded"]) + int(account["resends"]) >= 1

    await until("the other one sent it as well", told_twice, 60)
    pipeline.ends(DISK)
    account = await pipeline.counted(resolved=1)
    assert (account["investigated"], await pipeline.alerts(DISK)) == (1, [first])


@pytest.mark.parametrize("which", ["Prometheus", "Alertmanager"])
async def test_a_restart_of_either_opens_no_second_incident(start: Start, which: str) -> None:
    # An alert that Prometheus is silent about for long has ended, and a restart may take seconds: it is to be valid for
    # minutes, as it usually is. A new Alertmanager knows what it hears again, which is to be soon.
    pipeline = await start(times=REPEATING, resend_delay="1m" if which == "Prometheus" else "2s")
    pipeline.fires(DISK)
    (first,) = await pipeline.arrived(DISK)
    server = pipeline.prometheus if which == "Prometheus" else pipeline.alertmanagers[0]
    await server.restart()
    before = await pipeline.account()
    pipeline.fires(PROBE)
    await pipeline.arrived(PROBE)
    await pipeline.counted(resends=before["resends"] + 2)
    assert await pipeline.alerts(DISK) == [first]


async def test_a_restart_of_the_intake_after_it_wrote_and_before_it_answered_doubles_nothing(
    start: Start, door: Door
) -> None:
    async with open_relay(door.base) as (relay, address), open_intake(door.kube, door.pool) as (restarted, *_):
        pipeline = await start(through=address)
        relay.dies_next = True
        pipeline.fires(DISK)

        async def turned_away() -> bool:
            return relay.turned_away >= 1

        await until("Alertmanager sends again, to nobody", turned_away, 60)
        relay.base, relay.up = restarted, True
        (first,) = await pipeline.arrived(DISK)

        async def told_again() -> dict[str, Any] | None:
            account = await pipeline.account()
            return account if account["resends"] + account["folded"] >= 1 else None

        account = await until("Alertmanager got through", told_again, 60)
        assert (await pipeline.alerts(DISK), account["investigated"], account["rejected"]) == ([first], 1, 0)
        pipeline.ends(DISK)
        await pipeline.counted(resolved=1)


async def test_what_fires_while_intake_and_alertmanager_are_away_arrives_once(start: Start, door: Door) -> None:
    async with open_relay(door.base) as (relay, address):
        pipeline = await start(through=address)
        relay.up = False
        pipeline.fires(DISK)

        async def turned_away() -> bool:
            return relay.turned_away >= 1

        await until("Alertmanager sends, to nobody", turned_away, 60)
        await pipeline.alertmanagers[0].restart()
        relay.up = True
        (first,) = await pipeline.arrived(DISK)
        pipeline.ends(DISK)
        account = await pipeline.counted(resolved=1)
        assert (await pipeline.alerts(DISK), account["investigated"], account["rejected"]) == ([first], 1, 0)


async def test_a_wrong_clock_of_the_sender_opens_and_ends_one_incident(start: Start) -> None:
    pipeline = await start(times=REPEATING)
    now, hour = datetime.now(UTC), timedelta(hours=1)
    await pipeline.tells(DISK, now + hour, now + 2 * hour)
    await pipeline.tells(NODE, now - timedelta(days=400), now + hour)
    # Alertmanager tells of it before it begins.
    await pipeline.tells(PROBE, now + timedelta(seconds=8), now + timedelta(seconds=9))
    names = {name: await pipeline.arrived(name) for name in (PROBE, DISK, NODE)}
    await pipeline.counted(resolved=1)
    await pipeline.tells(NODE, now - timedelta(days=400), datetime.now(UTC))
    account = await pipeline.counted(resolved=2, resends=4)
    assert {name: await pipeline.alerts(name) for name in names} == names
    assert (account["investigated"], account["rejected"]) == (3, 0)
    await pipeline.tells(NODE, datetime.now(UTC), datetime.now(UTC) + hour)
    await pipeline.arrived(NODE, count=2)
