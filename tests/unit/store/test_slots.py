"""Tests the decision whether a model call is admitted, at, below and above each limit."""

import pytest

from tarsy.plan.model import CallLimits, ObjectRef
from tarsy.store.runs.rate_limit_slots import Held, Load, hold_slots, provider_key

ALL = CallLimits(max_concurrent=2, requests_per_minute=3, tokens_per_minute=1000)


@pytest.mark.parametrize(
    ("load", "tokens", "held"),
    [
        pytest.param(Load(), 100, None, id="nobody there"),
        pytest.param(Load(running=1), 100, None, id="room for one"),
        pytest.param(Load(running=2), 100, Held("maxConcurrent", 2), id="as many as may be"),
        pytest.param(Load(running=3), 100, Held("maxConcurrent", 2), id="more, since the limit was lowered"),
        pytest.param(Load(requests=2, seconds=9.0), 100, None, id="one more this minute"),
        pytest.param(Load(requests=3, seconds=9.0), 100, Held("requestsPerMinute", 3, 9.0), id="no more this minute"),
        pytest.param(Load(tokens=900, seconds=9.0), 100, None, id="the last tokens"),
        pytest.param(Load(tokens=901, seconds=9.0), 100, Held("tokensPerMinute", 1000, 9.0), id="one token too many"),
        pytest.param(Load(), 5000, None, id="more than a minute's alone"),
        pytest.param(Load(tokens=1, seconds=9.0), 5000, Held("tokensPerMinute", 1000, 9.0), id="and never with others"),
        pytest.param(Load(behind=True), 100, Held("tokensPerMinute", 1000), id="behind one that has to wait"),
    ],
)
def test_what_a_call_waits_for(load: Load, tokens: int, held: Held | None) -> None:
    assert hold_slots(ALL, load, tokens) == held


def test_what_is_not_limited_holds_nobody() -> None:
    busy = Load(running=10**6, requests=10**6, tokens=10**9)
    assert hold_slots(CallLimits(), busy, 10**9) is None
    assert hold_slots(CallLimits(max_concurrent=3), Load(running=2, requests=10**6, tokens=10**9), 10**9) is None
    assert hold_slots(CallLimits(requests_per_minute=3), Load(running=9, tokens=10**9, requests=2), 10**9) is None


@pytest.mark.parametrize(
    ("limits", "limit"),
    [(CallLimits(max_concurrent=1), "maxConcurrent"), (CallLimits(requests_per_minute=1), "requestsPerMinute")],
)
def test_who_came_later_waits_although_there_is_room(limits: CallLimits, limit: str) -> None:
    assert hold_slots(limits, Load(behind=True), 1) == Held(limit, 1)


def test_a_provider_is_its_object_not_its_name() -> None:
    ref = ObjectRef(kind="LLMProvider", namespace="team", name="p")
    assert provider_key(ref) == "team/p"
    assert provider_key(ref.model_copy(update={"uid": "u"})) == "u"
