"""Tests the order of claims (fewest runs of a namespace, then priority, then age) and their limits."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.store.runs.claim_choice import Candidate, choose_runs

START = datetime(2026, 1, 1, tzinfo=UTC)


def candidate(
    number: int,
    namespace: str = "a",
    chain: str = "c",
    *,
    priority: int = 0,
    namespace_limit: int | None = None,
    chain_limit: int | None = None,
    served_at: datetime | None = None,
) -> Candidate:
    return Candidate(
        UUID(int=number),
        namespace,
        "library",
        chain,
        priority,
        START + timedelta(seconds=number),
        namespace_limit,
        chain_limit,
        served_at=served_at,
    )


def test_oldest_goes_first_in_one_namespace() -> None:
    waiting = [candidate(3), candidate(1), candidate(2)]
    assert [c.id.int for c in choose_runs(waiting, {}, free=2, global_limit=9)] == [1, 2]


def test_namespace_with_the_fewest_runs_goes_first() -> None:
    waiting = [candidate(1, "a"), candidate(2, "a"), candidate(3, "b"), candidate(4, "b")]
    running = {("a", "library", "c"): 1, ("a", "library", "d"): 1}
    assert [c.id.int for c in choose_runs(waiting, running, free=4, global_limit=9)] == [3, 4, 1, 2]


def test_fairness_goes_before_priority() -> None:
    waiting = [candidate(1, "b"), candidate(2, "a", priority=5)]
    running = {("a", "library", "c"): 1}
    assert [c.id.int for c in choose_runs(waiting, running, free=1, global_limit=99)] == [1]


def test_priority_decides_within_a_namespace_whatever_the_chain() -> None:
    waiting = [candidate(1, "a", "c"), candidate(2, "a", "d", priority=5), candidate(3, "a", "c", priority=5)]
    assert [c.id.int for c in choose_runs(waiting, {}, free=3, global_limit=99)] == [2, 3, 1]


@pytest.mark.parametrize("free", [1, 2, 7])
def test_urgent_runs_of_one_namespace_do_not_starve_another(free: int) -> None:
    """Runs that end before the next claim: nobody holds a place then, and the turn decides."""
    left = [candidate(n, "a", priority=10) for n in range(150)] + [candidate(999, "b", priority=-10)]
    served: dict[str, datetime] = {}
    order: list[int] = []
    for claim in range(2):
        now = START + timedelta(days=1, seconds=claim)
        waiting = [replace(c, served_at=served.get(c.namespace)) for c in left]
        chosen = choose_runs(waiting, {}, free=free, global_limit=99)
        served.update({c.namespace: now for c in chosen})
        order += [c.id.int for c in chosen]
        left = [c for c in left if c.id.int not in order]
    assert 999 in order[:2]


def test_of_equal_namespaces_the_one_that_was_served_longest_ago_goes_first() -> None:
    waiting = [
        candidate(1, "a", priority=9, served_at=START + timedelta(seconds=5)),
        candidate(2, "b", served_at=START),
        candidate(3, "c", priority=-9),
    ]
    assert [c.id.int for c in choose_runs(waiting, {}, free=3, global_limit=9)] == [3, 2, 1]


@pytest.mark.parametrize(("limit", "taken"), [(1, 0), (2, 1), (3, 2), (None, 3)])
def test_limit_of_every_namespace_counts_its_runs(limit: int | None, taken: int) -> None:
    waiting = [candidate(n, "a") for n in range(3)]
    chosen = choose_runs(waiting, {("a", "library", "x"): 1}, free=9, global_limit=9, namespace_limit=limit)
    assert len(chosen) == taken


def test_limit_of_a_chain_counts_its_runs_in_all_namespaces() -> None:
    waiting = [candidate(1, "a", chain_limit=2), candidate(2, "b", chain_limit=2), candidate(3, "b", "other")]
    chosen = choose_runs(waiting, {("z", "library", "c"): 1}, free=5, global_limit=9)
    assert [c.id.int for c in chosen] == [1, 3]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 2)),
        max_size=25,
    ),
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.just("library"), st.sampled_from("xyz")), st.integers(0, 3), max_size=4
    ),
    st.integers(0, 6),
    st.integers(0, 12),
)
def test_no_limit_is_ever_exceeded_and_no_place_left_empty_that_somebody_could_have(
    waiting: list[tuple[str, str, int]],
    running: dict[tuple[str, str, str], int],
    free: int,
    global_limit: int,
) -> None:
    of_namespace = {"a": 2, "b": 4, "c": None}
    of_chain = {"x": 3, "y": None, "z": 1}
    candidates = [
        candidate(n, ns, chain, priority=p, namespace_limit=of_namespace[ns], chain_limit=of_chain[chain])
        for n, (ns, chain, p) in enumerate(waiting)
    ]
    chosen = choose_runs(candidates, running, free=free, global_limit=global_limit)
    assert len({c.id for c in chosen}) == len(chosen) <= free
    namespaces = Counter(c.namespace for c in chosen)
    chains = Counter(c.chain for c in chosen)
    before_ns: Counter[str] = Counter()
    before_chain: Counter[str] = Counter()
    for (ns, _, chain), runs in running.items():
        before_ns[ns] += runs
        before_chain[chain] += runs
    total = before_ns.total() + len(chosen)
    assert not chosen or total <= global_limit
    assert all(before_ns[c.namespace] + namespaces[c.namespace] <= (c.namespace_limit or 99) for c in chosen)
    assert all(before_chain[c.chain] + chains[c.chain] <= (c.chain_limit or 99) for c in chosen)
    if len(chosen) < free and total < global_limit:
        for left in set(candidates) - set(chosen):
            full = before_ns[left.namespace] + namespaces[left.namespace] >= (left.namespace_limit or 99)
            assert full or before_chain[left.chain] + chains[left.chain] >= (left.chain_limit or 99)
