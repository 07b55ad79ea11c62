"""Tests which errors of an object's masking make it not Ready, by field."""

from typing import Any

import pytest

from tarsy.controllers import configuration
from tarsy.controllers.readiness.masking import masking_errors
from tarsy.plan.catalog import ResourceCatalog
from tarsy.resources.v1alpha1.common import ConfigStatus
from unit.controllers.builders import reconcile_context
from unit.plan.builders import agent, defaults, server

BAD = {
    "patternGroups": ["basic", "nosuch"],
    "patterns": ["nor_this"],
    "customPatterns": [{"name": "ahead", "pattern": "(?=a)b", "replacement": "-"}],
}


@pytest.mark.parametrize(
    ("obj", "at"),
    [
        (server(masking=BAD), "spec.masking"),
        (defaults(alertMasking=BAD), "spec.alertMasking"),
        (defaults(modelOutputMasking=BAD), "spec.modelOutputMasking"),
    ],
    ids=["MCPServer", "alerts", "models"],
)
def test_each_entry_is_told_with_its_field_and_the_remedy(obj: Any, at: str) -> None:
    group, pattern, custom = masking_errors(obj)
    assert (group.field, pattern.field, custom.field) == (
        f"{at}.patternGroups[1]",
        f"{at}.patterns[0]",
        f"{at}.customPatterns[0]",
    )
    assert "use one of basic" in group.message
    assert "use one of kubernetes_secret" in pattern.message
    assert "lookahead" in custom.message


@pytest.mark.parametrize("obj", [server(), defaults(), agent(), server(masking={"enabled": False})])
def test_nothing_is_wrong_with_what_says_nothing(obj: Any) -> None:
    assert masking_errors(obj) == []


async def test_an_object_whose_masking_cannot_be_used_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[ConfigStatus] = []

    async def write_status(client: object, cache: object, obj: object, status: ConfigStatus) -> None:
        written.append(status)

    monkeypatch.setattr(configuration, "write_status", write_status)
    for obj in (server(masking=BAD), server()):
        await configuration.reconcile(obj, reconcile_context(cache=ResourceCatalog([obj])))
    (bad,), (good,) = (status.conditions for status in written)
    assert (bad.status, bad.reason) == ("False", "MaskingInvalid")
    assert "spec.masking.customPatterns[0]: custom pattern 'ahead' is not an RE2 pattern" in bad.message
    assert good.status == "True"
