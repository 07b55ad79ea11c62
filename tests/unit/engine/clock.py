"""An event loop whose time jumps to the next timer instead of waiting for it: minutes of limits in milliseconds.

While a thread works for it, its time stands still.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
THREAD_SECONDS: Final = 60.0


class _Jump(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    now = 0.0
    threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self.threads:
            woken = super().select(THREAD_SECONDS)
            assert woken, f"a thread has worked for {THREAD_SECONDS:g} s"
            return woken
        if timeout is None:
            raise AssertionError("everything waits and no timer is set: this would hang for ever")
        self.now += max(0.0, timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its `time()` starts at 0."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Counts what threads work on."""
        future = super().run_in_executor(executor, func, *args)
        self._jump.threads += 1
        future.add_done_callback(self._ended)
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Waits for the threads, as one of them does."""
        self._jump.threads += 1
        try:
            await super().shutdown_default_executor(*args)
        finally:
            self._jump.threads -= 1

    def _ended(self, _: asyncio.Future[Any]) -> None:
        self._jump.threads -= 1


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
