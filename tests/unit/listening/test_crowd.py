"""Tests which member a full `FairSet` evicts."""

import pytest

from tarsy.listening.fair_set import FairSet


def test_nobody_leaves_at_and_below_the_limit() -> None:
    crowd: FairSet[str, int] = FairSet(3)
    assert [crowd.enter("a", number) for number in range(3)] == [[], [], []]
    assert len(crowd) == 3


def test_oldest_leaves_above_the_limit() -> None:
    crowd: FairSet[str, int] = FairSet(3)
    for number in range(3):
        crowd.enter("a", number)
    assert crowd.enter("a", 3) == [0]
    assert len(crowd) == 3


def test_largest_group_makes_room_for_another_one() -> None:
    crowd: FairSet[str, str] = FairSet(4)
    for group, member in (("quiet", "q1"), ("loud", "l1"), ("loud", "l2"), ("loud", "l3")):
        crowd.enter(group, member)
    assert crowd.enter("third", "t1") == ["l1"]
    assert crowd.enter("loud", "l4") == ["l2"]
    assert crowd.enter("quiet", "q2") == ["l3"]


@pytest.mark.parametrize(("number", "left"), [(1, []), (2, []), (3, ["m0"])])
def test_group_has_a_limit_of_its_own(number: int, left: list[str]) -> None:
    crowd: FairSet[str, str] = FairSet(10, each=2)
    gone = [other for n in range(number) for other in crowd.enter("a", f"m{n}")]
    assert gone == left


def test_who_left_frees_its_place_and_may_leave_again() -> None:
    crowd: FairSet[str, str] = FairSet(1)
    crowd.enter("a", "m")
    crowd.leave("m")
    crowd.leave("m")
    assert len(crowd) == 0
    assert crowd.enter("b", "n") == []


@pytest.mark.parametrize(("limit", "each"), [(0, None), (1, 0)])
def test_crowd_without_room_is_refused(limit: int, each: int | None) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        FairSet(limit, each)
