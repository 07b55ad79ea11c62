"""Operators and workers as processes of one machine, as many as a test wants, to be killed, stopped and woken.

Decision: they are forked from one process that has imported the product (`e2e/zygote.py`), so that a test can afford to
kill one every second; what runs in them is `tarsy run` and `tarsy worker`, from the command line on.
"""

import asyncio
import contextlib
import os
import signal

from e2e.machine import LONG_LEASE, Machine
from e2e.waiting import until
from tarsy_dev.operator_process import ON_THIS_MACHINE
from tarsy_dev.record_api import http_arguments

LEASE_SECONDS = 5.0


class Member:
    """One process of a fleet."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def alive(self) -> bool:
        """Whether it is still there; one that is stopped is."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, where there is still somebody to get it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def gone(self, seconds: float = 120.0) -> None:
        """Waits until it has ended."""

        async def look() -> bool:
            return not self.alive

        await until(f"process {self.pid} has ended", look, seconds)

    async def kill(self) -> None:
        """Ends it as a node does that loses its power."""
        self.signal(signal.SIGKILL)
        await self.gone()


class Fleet:
    """Starts members on a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.members: list[Member] = []

    def controller(self, *arguments: str) -> Member:
        """An operator that runs no investigation itself."""
        return self.start("run", "--places", "0", *arguments)

    def operator(self, *arguments: str) -> Member:
        """An operator with a worker in it."""
        return self.start("run", "--lease-seconds", f"{LEASE_SECONDS:g}", *arguments)

    def worker(self, *arguments: str, before: str = "") -> Member:
        """A worker with a short lease, which lapses by itself; `before` is Python that it runs first."""
        return self.start("worker", "--lease-seconds", f"{LEASE_SECONDS:g}", *arguments, before=before)

    async def successor(self) -> Member:
        """A worker with a long lease, once those of all workers before it, which are dead, are over."""
        await self._machine.lapse()
        return self.start("worker", *LONG_LEASE)

    def start(self, *arguments: str, before: str = "") -> Member:
        """A `tarsy` process."""
        fixed = ["--kubeconfig", str(self._machine.api.kubeconfig), *ON_THIS_MACHINE]
        doors = http_arguments(0, 0) if arguments[0] == "run" else []
        drain = [] if "--drain-seconds" in arguments else ["--drain-seconds", "0"]
        environment = {"TARSY_DATABASE_URL": self._machine.postgres.dsn}
        alone = ["--processes", "1"] if arguments[0] == "worker" else []
        order = [arguments[0], *fixed, *doors, *drain, *alone, *arguments[1:]]
        pid, _ = self._machine.zygote.fork(order, environment, log=self._machine.log, before=before)
        member = Member(pid)
        self.members.append(member)
        return member

    async def disband(self) -> None:
        """Ends all that are left."""
        for member in self.members:
            member.signal(signal.SIGKILL)
        await asyncio.gather(*(member.gone() for member in self.members))
        self.members.clear()
