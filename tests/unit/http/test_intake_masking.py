"""Tests that the intake masks before it creates, even with slow or invalid patterns."""

from typing import Any, cast

import pytest

from tarsy.http.intake.configuration import Configuration
from tarsy.kube.client import KubeClient

GREEDY = {"name": "greedy", "pattern": "(?s)x.*y|x", "replacement": "-"}
BADGE = {"name": "badge", "pattern": "badge [0-9]+", "replacement": "[BADGE]"}
WRONG = {"name": "wrong", "pattern": "(", "replacement": "-"}


class Api:
    """Has one InvestigationDefaults in each namespace."""

    def __init__(self, masking: dict[str, Any]) -> None:
        self._masking = masking

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": "1"}
        return {"apiVersion": "tarsy.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": self._spec}

    @property
    def _spec(self) -> dict[str, Any]:
        return {"alertMasking": self._masking}


@pytest.mark.parametrize(
    ("patterns", "masked"),
    [
        ([BADGE], "[BADGE], password: [MASKED_PASSWORD]"),
        ([GREEDY, BADGE], "[BADGE], password: [MASKED_PASSWORD]"),
        ([BADGE, GREEDY], "[BADGE], password: [MASKED_PASSWORD]"),
        ([WRONG, BADGE], "[BADGE], password: [MASKED_PASSWORD]"),
    ],
    ids=["all right", "slow, first", "slow, last", "wrong"],
)
@pytest.mark.sweep("another order")
async def test_an_alert_is_masked_by_all_patterns_that_can_be_used(patterns: list[Any], masked: str) -> None:
    configuration = Configuration(cast(KubeClient, Api({"customPatterns": patterns})), "tarsy-library")
    filling = "x" * 300_000
    assert await configuration.mask(f"{filling} badge 4711, password: hunter22", "shop") == f"{filling} {masked}"
