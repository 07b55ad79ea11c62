"""Replays from the command line."""

import json
from typing import Any

import pytest

from tarsy.cli.requests.replay import replay_fields, start_replay
from unit.cli.people.doors import FakeDoor


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"chain": None, "provider": None, "on_miss": "Refuse"}, {"onMiss": "Refuse"}),
        (
            {"chain": "next", "provider": "other", "on_miss": "Live"},
            {"onMiss": "Live", "overrides": {"chainRef": {"name": "next"}, "llmProviderRef": {"name": "other"}}},
        ),
    ],
)
async def test_the_name_of_the_replay_is_printed(
    given: dict[str, Any], fields: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    door = FakeDoor({}, [])
    assert replay_fields(**given) == fields
    assert await start_replay(door, "shop", "run", "text", **given) == 0
    assert capsys.readouterr().out.strip() == "investigation.tarsy.dev/run-replay-x"
    assert door.asked == [("replay shop/run", fields)]
    assert await start_replay(door, "shop", "run", "json", **given) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "run-replay-x"
