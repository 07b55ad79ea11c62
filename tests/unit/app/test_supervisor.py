"""The supervisor's rules: pauses between starts, when a pod is unhealthy, and how its processes name themselves."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tarsy.app.settings.processes import WorkerProcessSettings
from tarsy.app.settings.work_topics import DatabaseSettings
from tarsy.app.supervisor import CRASH_LOOP, LONGEST_PAUSE_SECONDS, pause_seconds
from tarsy.app.worker_channel import Order
from tarsy.app.worker_shares import shares_of
from tarsy.observe import logs


@pytest.mark.parametrize(("ends", "seconds"), [(0, 1), (1, 1), (2, 2), (5, 16), (6, LONGEST_PAUSE_SECONDS), (99, 30)])
def test_pauses_between_starts_grow_to_a_limit(ends: int, seconds: float) -> None:
    assert pause_seconds(ends) == seconds


def test_a_crash_loop_is_noticed_within_a_minute_of_pauses() -> None:
    assert sum(pause_seconds(ends) for ends in range(1, CRASH_LOOP)) < 60


def test_an_order_carries_all_settings() -> None:
    url = "postgresql://tarsy:secret@db/tarsy"
    settings = WorkerProcessSettings.model_validate(
        {
            "database": {"url": url},
            "outbound": {"hosts": ["localhost"], "workloadIdentityNamespaces": ["a"]},
            "logging": {"level": "DEBUG"},
        }
    )
    order = Order(settings=settings, share=shares_of(settings, 1, None)[0], parent=7)
    assert Order.model_validate_json(order.model_dump_json(by_alias=True)) == order
    assert settings.database == DatabaseSettings(url=url)


@pytest.fixture
def _root() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers, root.level)
    yield
    root.handlers, root.level = before


@pytest.mark.usefixtures("_root")
@pytest.mark.parametrize("number", [None, 2])
def test_every_log_line_names_its_process(number: int | None) -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out, process=number)
    logging.getLogger("any").warning("hello")
    assert json.loads(out.getvalue()).get("process") == number
