"""Retries from the command line."""

import json

import pytest

from tarsy.cli.requests.retry import start_retry
from unit.cli.people.doors import FakeDoor


@pytest.mark.parametrize(("chain", "provider"), [(None, None), ("next", "large")])
async def test_the_name_of_the_new_investigation_is_printed(
    chain: str | None, provider: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    door = FakeDoor({}, [])
    assert await start_retry(door, "shop", "run", "text", chain=chain, provider=provider) == 0
    assert capsys.readouterr().out.strip() == "investigation.tarsy.dev/run-retry-x"
    assert door.asked == [("retry shop/run", {"chain": chain, "provider": provider})]
    assert await start_retry(door, "shop", "run", "json", chain=chain, provider=provider) == 0
    assert json.loads(capsys.readouterr().out) == {
        "namespace": "shop",
        "name": "run-retry-x",
        "uid": "uid",
        "retryOf": "run",
    }
