"""What a scenario leaves behind for others: its runs by the names of their goldens, while its product still works."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from e2e.scenarios.record import Run
from e2e.scenarios.scene import Scene


@dataclass(frozen=True, slots=True)
class Played:
    """One run of a scenario, and what people do to a replay of it, as they did to the run.

    Args:
        alert: the alert that it investigated.
        run: the run in all its layers.
        meanwhile: is given the name of the replay once that was created; None: nobody does anything.
        more: further texts of the golden, by the names of their files.
    """

    alert: str
    run: Run
    meanwhile: Callable[[str], Awaitable[None]] | None = None
    more: Mapping[str, str] = field(default_factory=dict)


Play = Callable[[Scene], AbstractAsyncContextManager[Mapping[str, Played]]]
"""Plays a scenario."""


async def check_goldens(play: Play, scene: Scene) -> Mapping[str, Played]:
    """Plays a scenario, and compares each of its runs with the golden of its name."""
    async with play(scene) as played:
        pass
    for golden, one in played.items():
        scene.check(golden, one.run, one.more)
    return played
