"""Starts a Prometheus and Alertmanagers with configuration files, on free ports of 127.0.0.1.

Decision: the times are those of an installation divided by ten and more (a rule is evaluated every second), so that a
demo need not wait; everything else is as people have it.
"""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tarsy_dev.apiserver.errors import ServerStartError
from tarsy_dev.apiserver.process import Spawner, end, free_port
from tarsy_dev.monitoring.binaries import MonitoringBinaries

INTERVAL = "1s"
"""Between two scrapes, and between two evaluations of a rule."""
START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_STOP_SECONDS = 5.0
_LOG_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Receiver:
    """Holds the receiver of Alertmanager's notifications: the intake of TARSy.

    Attributes:
        url: the intake, with ?namespace=.
        token_file: file with the token of the sender.
    """

    url: str
    token_file: Path


@dataclass(frozen=True, slots=True)
class AlertmanagerTimes:
    """Holds the waits of Alertmanager, in its own format."""

    group_wait: str = "1s"
    group_interval: str = "1s"
    repeat_interval: str = "1h"


class MonitoringServer:
    """One running program. `restart` starts it again with the same files and the same port."""

    def __init__(self, command: Sequence[str | Path], port: int, ready: str, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        program = Path(command[0])
        # Alertmanager reads its templates from there (`binaries`).
        self._command: list[str | Path] = ["sh", "-c", 'cd "$0" && exec "$@"', program.parent, *command]
        self._name, self._ready, self._log = program.name, ready, log
        self._spawner = Spawner()
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Starts the program and waits until it is ready.

        Raises:
            ServerStartError: it ended, or was not ready in time; with the end of its log.
        """
        environment = {"PATH": os.environ.get("PATH", "")}
        process = await asyncio.to_thread(self._spawner.spawn, self._command, self._log, environment)
        self._process = process
        name = self._name
        try:
            async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as session:
                while not await _answers(session, self.url + self._ready):
                    if process.poll() is not None:
                        raise ServerStartError(f"{name} ended with {process.returncode}:\n{self._end_of_log()}")
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            text = f"{name} was not ready within {START_SECONDS:g} s; its log ends:\n{self._end_of_log()}"
            raise ServerStartError(text) from None

    async def get(self, path: str, **parameters: str) -> Any:
        """Returns the JSON that the program answers.

        Raises:
            aiohttp.ClientError: it does not answer, or refuses.
        """
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10), raise_for_status=True) as session:
            async with session.get(self.url + path, params=parameters) as answer:
                return await answer.json()

    async def stop(self) -> None:
        """Ends the program; it can be started again."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(end, process, _STOP_SECONDS)

    async def restart(self) -> None:
        """Ends the program and starts it again."""
        await self.stop()
        await self.start()

    async def close(self) -> None:
        """Ends the program for good."""
        await self.stop()
        self._spawner.close()

    def _end_of_log(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_CHARACTERS:] if self._log.exists() else "(no log)"


@contextlib.asynccontextmanager
async def running_prometheus(
    binaries: MonitoringBinaries,
    folder: Path,
    *,
    targets: Mapping[str, str],
    rules: Sequence[Mapping[str, Any]],
    alertmanagers: Sequence[MonitoringServer],
    resend_delay: str = "2s",
) -> AsyncIterator[MonitoringServer]:
    """Runs a Prometheus.

    Args:
        binaries: the programs.
        folder: for its files; made if it is missing.
        targets: host and port of each job that is scraped, by its name; the label `instance` is the job's name too.
        rules: alerting rules.
        alertmanagers: whom it tells.
        resend_delay: time until a firing alert is sent again, such as 2s. Alertmanager takes an alert to have ended
            when it hears nothing of it for four times as long.
    """
    tell = [{"static_configs": [{"targets": [one.url.removeprefix("http://") for one in alertmanagers]}]}]
    config = {
        "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
        "rule_files": [str(folder / "rules.yaml")],
        "alerting": {"alertmanagers": tell},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [target], "labels": {"instance": job}}]}
            for job, target in targets.items()
        ],
    }
    groups = [{"name": "rules", "rules": [dict(rule) for rule in rules]}]
    _write(folder, {"prometheus.yaml": config, "rules.yaml": {"groups": groups}})
    port = free_port()
    command: list[str | Path] = [
        binaries.prometheus,
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--rules.alert.resend-delay={resend_delay}",
        "--log.level=warn",
    ]
    async with _running(MonitoringServer(command, port, "/-/ready", folder / "prometheus.log")) as server:
        yield server


@contextlib.asynccontextmanager
async def running_alertmanager(
    binaries: MonitoringBinaries,
    folder: Path,
    receiver: Receiver,
    *,
    times: AlertmanagerTimes | None = None,
    inhibit_rules: Sequence[Mapping[str, Any]] = (),
) -> AsyncIterator[MonitoringServer]:
    """Runs an Alertmanager of its own, not clustered with others.

    Args:
        binaries: the programs.
        folder: for its files; made if it is missing.
        receiver: whom it notifies, of the end of an alert as well.
        times: how long it waits.
        inhibit_rules: which alerts silence others.
    """
    times = times or AlertmanagerTimes()
    http = {"authorization": {"credentials_file": str(receiver.token_file)}}
    webhook = {"url": receiver.url, "send_resolved": True, "http_config": http}
    config = {
        "route": {
            "receiver": "tarsy",
            "group_by": ["alertname", "namespace"],
            "group_wait": times.group_wait,
            "group_interval": times.group_interval,
            "repeat_interval": times.repeat_interval,
        },
        "receivers": [{"name": "tarsy", "webhook_configs": [webhook]}],
        "inhibit_rules": [dict(rule) for rule in inhibit_rules],
    }
    _write(folder, {"alertmanager.yaml": config})
    port = free_port()
    command: list[str | Path] = [
        binaries.alertmanager,
        f"--config.file={folder / 'alertmanager.yaml'}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    async with _running(MonitoringServer(command, port, "/-/ready", folder / "alertmanager.log")) as server:
        yield server


@contextlib.asynccontextmanager
async def _running(server: MonitoringServer) -> AsyncIterator[MonitoringServer]:
    try:
        await server.start()
        yield server
    finally:
        await asyncio.shield(server.close())


def _write(folder: Path, files: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content))


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False
