"""Tests what `verify` prints and exits with."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tarsy.cli.runs.verify import report_lines, verify_status
from tarsy.http.views.seal import ErasedView, FlawView, RunSealView, SealView, published_seals
from tarsy.record.reading.seal import FlawKind, PublishedSeal

RUN = UUID(int=7)
HEAD = "ab" * 32


def run(**changes: Any) -> RunSealView:
    values = {
        "id": RUN,
        "name": "checkout",
        "question": False,
        "steps": 12,
        "rows": 1_340,
        "head": HEAD,
        "published_head": HEAD,
        "unpublished": 0,
        "left_open": 0,
        "flaw_count": 0,
        "flaws": [],
    }
    return RunSealView(**(values | changes))


CHANGED = FlawView(kind=FlawKind.CHANGED, where="message/1/2", message="differs from its sealed form")
ERASED = ErasedView(id=RUN, erased_at=datetime(2026, 11, 24, 3, 0, tzinfo=UTC), head=HEAD)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (SealView(runs=[run()]), 0),
        (SealView(runs=[run(), run(question=True, flaw_count=1, flaws=[CHANGED])]), 1),
        (SealView(runs=[run(steps=0, flaw_count=3)]), 2),
        (SealView(runs=[run(flaw_count=1, flaws=[CHANGED]), run(steps=0)]), 1),
        (SealView(erased=ERASED), 2),
    ],
)
def test_exit_status_says_whether_the_record_is_as_it_was_written(found: SealView, status: int) -> None:
    assert verify_status(found) == status


def test_a_sound_record_is_told_in_a_line() -> None:
    assert report_lines("team-a", "checkout", SealView(runs=[run()])) == [
        "investigation checkout: as it was written; 12 steps, 1,340 rows, head abababababababab"
    ]


def test_differences_are_listed_and_what_nothing_vouches_for_is_told() -> None:
    found = run(published_head=None, left_open=2, flaw_count=3, flaws=[CHANGED])
    assert report_lines("team-a", "checkout", SealView(runs=[found])) == [
        "investigation checkout: 3 differences; 12 steps, 1,340 rows, head abababababababab",
        "  The status of the object contains no head, so a rewritten chain would not be noticed.",
        "  2 rows were closed unfinished by the end of an attempt; they are not sealed.",
        "  Changed: message/1/2 differs from its sealed form",
        "  and 2 more",
    ]


def test_an_erased_record_is_told_as_erased() -> None:
    assert report_lines("team-a", "checkout", SealView(erased=ERASED)) == [
        f"team-a/checkout: the record was deleted at 2026-11-24 03:00:00Z. The last seal was {HEAD}."
    ]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"record": {"id": str(RUN), "seal": HEAD}, "recordRevision": 9}, {RUN: PublishedSeal(9, HEAD)}),
        ({"record": {"id": "checkout", "seal": HEAD}, "recordRevision": 9}, {}),
        ({"record": {"id": str(RUN)}, "recordRevision": 9}, {}),
        ({"record": {"id": str(RUN), "seal": HEAD}}, {}),
        ({}, {}),
    ],
)
def test_heads_are_read_from_statuses_by_run(status: dict[str, Any], expected: object) -> None:
    assert published_seals([{"status": status}, {}]) == expected
