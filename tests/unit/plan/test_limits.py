"""How much a provider takes is part of the plan, as its generation says it."""

from typing import Any

import pytest

from tarsy.plan.model import CallLimits, ObjectRef
from tarsy.plan.parts import provider_plan
from unit.plan.builders import provider

REF = ObjectRef(kind="LLMProvider", namespace="team-a", name="model", uid="u", generation=3)
ALL = {"maxConcurrent": 2, "requestsPerMinute": 30, "tokensPerMinute": 40_000}


@pytest.mark.parametrize(
    ("spec", "limits"),
    [
        ({}, None),
        ({"limits": {}}, CallLimits()),
        ({"limits": {"maxConcurrent": 2}}, CallLimits(max_concurrent=2)),
        ({"limits": ALL}, CallLimits(max_concurrent=2, requests_per_minute=30, tokens_per_minute=40_000)),
    ],
)
def test_limits_are_those_of_the_provider(spec: dict[str, Any], limits: CallLimits | None) -> None:
    assert provider_plan(provider(**spec), REF).limits == limits
