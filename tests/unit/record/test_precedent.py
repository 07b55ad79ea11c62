"""Tests the order in which runs are told about precedents, and that stored ones are read back."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tarsy.record.finding import Confidence
from tarsy.record.judging.precedent import (
    Precedent,
    PrecedentEnding,
    PrecedentMatch,
    rank_precedents,
    read_precedents,
    stored_precedents,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def precedent(
    number: int = 1,
    match: PrecedentMatch = PrecedentMatch.WORKLOAD,
    ending: PrecedentEnding = PrecedentEnding.UNKNOWN,
    score: float = 0.0,
    days: int = 0,
    **more: object,
) -> Precedent:
    return Precedent(
        id=UUID(int=number),
        namespace="shop",
        name=f"run-{number}",
        finished_at=NOON + timedelta(days=days),
        match=match,
        ending=ending,
        score=score,
        summary="The image does not exist.",
        confidence=Confidence.HIGH,
    ).model_copy(update=more)


CANDIDATES = st.lists(
    st.builds(
        precedent,
        st.integers(1, 6),
        st.sampled_from(PrecedentMatch),
        st.sampled_from(PrecedentEnding),
        st.floats(0, 2),
        st.integers(-9, 9),
    ),
    max_size=12,
)


@given(CANDIDATES)
def test_a_refuted_finding_never_ranks_over_a_confirmed_one_of_equal_match(found: list[Precedent]) -> None:
    ranked = rank_precedents(found)
    for place, one in enumerate(ranked):
        if one.ending is PrecedentEnding.REFUTED:
            after = [later for later in ranked[place + 1 :] if later.match is one.match]
            assert all(later.ending is PrecedentEnding.REFUTED for later in after)


@given(CANDIDATES)
def test_each_investigation_is_there_once_and_the_order_of_candidates_is_none(found: list[Precedent]) -> None:
    ranked = rank_precedents(found)
    assert len(ranked) == len({one.id for one in found})
    assert rank_precedents(reversed(found)) == ranked


def test_a_stronger_match_comes_before_how_it_ended() -> None:
    refuted = precedent(1, PrecedentMatch.INCIDENT, PrecedentEnding.REFUTED)
    confirmed = precedent(2, PrecedentMatch.WORDS, PrecedentEnding.CONFIRMED, score=2)
    assert rank_precedents([confirmed, refuted]) == [refuted, confirmed]


def test_of_equal_ones_the_later_comes_first() -> None:
    old, new = precedent(1, days=-1), precedent(2, days=0)
    assert rank_precedents([old, new]) == [new, old]


def test_precedents_are_read_as_stored_and_those_of_newer_versions_are_left_out() -> None:
    one = precedent(reviewer="jane", outcome="Settled", ending=PrecedentEnding.CONFIRMED)
    stored = stored_precedents([one])
    assert stored is not None and "score" not in stored[0]
    newer = {**stored[0], "match": "Telepathy"}
    assert read_precedents([newer, {**stored[0], "later": 1}]) == (one,)
    assert stored_precedents([]) is None and read_precedents(None) == ()
