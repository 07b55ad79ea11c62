"""The garbage collector of long-running processes."""

import gc
from collections.abc import Iterator

import pytest
import typer

from tarsy.app.garbage import YOUNGEST, collect_less_often
from tarsy.cli.running import go


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_what_exists_is_left_out_of_collections_and_new_objects_are_collected_less_often() -> None:
    gc.set_threshold(700, 11, 12)
    kept, before = [[]], gc.get_freeze_count()  # type: ignore[var-annotated]
    collect_less_often()
    assert gc.get_threshold() == (YOUNGEST, 11, 12)
    assert gc.get_freeze_count() > before
    assert not any(one is kept for one in gc.get_objects())


@pytest.mark.parametrize(("service", "youngest"), [(True, YOUNGEST), (False, 700)])
def test_only_a_long_running_process_collects_less_often(service: bool, youngest: int) -> None:
    async def work() -> int:
        return gc.get_threshold()[0] - youngest

    gc.set_threshold(700, 10, 10)
    with pytest.raises(typer.Exit) as ended:
        go(work(), service=service)
    assert ended.value.exit_code == 0
