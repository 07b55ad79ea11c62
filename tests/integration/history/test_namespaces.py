"""Tests which namespaces have a history."""

import asyncio
import logging

import pytest

from integration.controllers.desk import eventually
from integration.history.conftest import KEY, PAUSES, Shop
from tarsy.controllers.history.recorder import HistoryRecorder, HistoryWatches
from tarsy.evidence.history.digests import Digests
from tarsy.evidence.history.kinds import HISTORY_LABEL, RECORDED_KINDS
from tarsy.kube.client import KubeClient
from tarsy.store.history.retention import HistoryRetention

pytestmark = pytest.mark.timeout(180)


def _recorder(shop: Shop, client: KubeClient, *namespaces: str) -> HistoryRecorder:
    return HistoryRecorder(
        client,
        shop.history,
        HistoryRetention(shop.pool),
        Digests(KEY),
        shop.metrics,
        HistoryWatches(namespaces, tuple(kind for kind in RECORDED_KINDS if kind.kind == "ConfigMap"), PAUSES),
    )


async def test_a_label_with_another_value_is_told_and_records_nothing(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    recorder = _recorder(shop, shop.kube, shop.name)
    assert {one.name for one in await recorder._wanted()} == {shop.name}
    await shop.kube.patch("Namespace", None, shop.name, {"metadata": {"labels": {HISTORY_LABEL: "all"}}})
    for _ in range(2):
        assert await recorder._wanted() == set()
    told = [message for message in caplog.messages if HISTORY_LABEL in message]
    assert told == [f"namespace {shop.name} has no history: its label {HISTORY_LABEL} must be keys or masked-values"]


@pytest.mark.parametrize(("most", "left_out"), [(3, []), (2, []), (1, ["b"])])
async def test_namespaces_beyond_the_limit_are_told_and_left_out(
    shop: Shop, most: int, left_out: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr("tarsy.controllers.history.recorder.MAX_NAMESPACES", most)
    other = f"{shop.name}-b"
    await shop.kube.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": other, "labels": {HISTORY_LABEL: "masked-values"}},
        }
    )
    found = await _recorder(shop, shop.kube, shop.name, other)._wanted()
    assert {one.name: one.values for one in found} == {shop.name: False} | ({other: True} if not left_out else {})
    assert len([message for message in caplog.messages if f"namespace {other}" in message]) == len(left_out)


async def test_namespaces_are_found_by_their_label(shop: Shop) -> None:
    found = await _recorder(shop, shop.kube)._wanted()
    assert shop.name in {one.name for one in found}
    assert "default" not in {one.name for one in found}


async def test_values_are_stored_from_the_moment_that_the_namespace_chooses_them(shop: Shop) -> None:
    await shop.make("ConfigMap", "config", data={"level": "a-plain-value"})
    async with shop.recorder(kinds=("ConfigMap",)):
        assert b"a-plain-value" not in await shop.everything_stored()
        await shop.kube.patch("Namespace", None, shop.name, {"metadata": {"labels": {HISTORY_LABEL: "masked-values"}}})
        number = 0

        async def shown() -> bool:
            nonlocal number
            number += 1
            await shop.kube.patch("ConfigMap", shop.name, "config", {"data": {"level": f"another-plain-{number}"}})
            await asyncio.sleep(0.2)
            return b"another-plain-" in await shop.everything_stored()

        await eventually(shown)
        assert b"a-plain-value" not in await shop.everything_stored()
