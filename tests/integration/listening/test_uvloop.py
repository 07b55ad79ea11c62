"""Tests connections on uvloop, the event loop of the image, whose transports behave differently."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from extras import needs
from integration.listening import test_listening as listening
from tarsy.app.event_loop import fastest

pytestmark = needs("uvloop")


@pytest.mark.parametrize(
    "scenario",
    [
        listening.test_body_is_never_unpacked,
        listening.test_head_that_comes_drop_by_drop_has_the_same_deadline,
        listening.test_idle_connection_is_ended_until_its_client_has_signed_in,
        listening.test_large_body_is_no_head_however_it_comes,
        listening.test_every_head_of_a_connection_has_that_size,
        listening.test_refusal_is_read_by_a_client_that_still_sends_and_the_connection_ends,
        listening.test_who_has_signed_in_takes_no_place_and_is_not_pushed_out,
        listening.test_connection_that_ended_gives_its_place_back,
    ],
)
def test_listening_on_uvloop(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario()

    with asyncio.Runner(loop_factory=fastest()) as runner:
        runner.run(run())


def test_handshake_on_uvloop(tmp_path: object) -> None:
    async def run() -> None:
        await listening.test_handshake_that_does_not_end_holds_a_place_and_loses_it(tmp_path)  # type: ignore[arg-type]

    with asyncio.Runner(loop_factory=fastest()) as runner:
        runner.run(run())
