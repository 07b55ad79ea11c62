"""Tests the stored revisions of Chains."""

import asyncio

import asyncpg
import pytest

from tarsy.store.runs.revisions import KEPT, ChainIdentity, KnownRevision, Revisions, RevisionState

PODS = ChainIdentity("uid-1", "team-a", "pods")
CANDIDATE, SERVING, REJECTED, RETIRED = RevisionState


def revision(digest: str, state: RevisionState = CANDIDATE, generation: int = 1, reason: str = "Why") -> KnownRevision:
    return KnownRevision(digest, generation, state, reason, author={"username": "jane"})


async def states(revisions: Revisions, uid: str = PODS.uid) -> dict[str, RevisionState]:
    return {one.digest: one.state for one in await revisions.known(uid)}


async def test_the_revision_that_served_before_is_retired(pool: asyncpg.Pool) -> None:
    revisions = Revisions(pool)
    assert await revisions.serving(PODS.uid) is None
    await revisions.put(PODS, revision("a", SERVING), "A")
    await revisions.put(PODS, revision("b"), "B")
    assert await revisions.serving(PODS.uid) == ("a", "A")
    await revisions.put(PODS, revision("b", SERVING), "B")
    assert await revisions.serving(PODS.uid) == ("b", "B")
    assert await states(revisions) == {"a": RETIRED, "b": SERVING}
    assert (await revisions.known(PODS.uid))[0].author == {"username": "jane"}


async def test_a_new_chain_of_the_same_name_begins_anew(pool: asyncpg.Pool) -> None:
    revisions = Revisions(pool)
    await revisions.put(PODS, revision("a", SERVING), "A")
    again = ChainIdentity("uid-2", "team-a", "pods")
    assert await revisions.known(again.uid) == []
    await revisions.put(again, revision("a", SERVING), "A")
    assert {one.uid for one in await revisions.chains(["team-a"])} == {"uid-1", "uid-2"}
    assert await revisions.chains(["team-b"]) == []
    await revisions.forget(PODS.uid)
    assert await revisions.chains() == [again]


@pytest.mark.parametrize(("tried", "left"), [(KEPT - 1, KEPT), (KEPT, KEPT + 1), (KEPT + 3, KEPT + 1)])
async def test_old_revisions_are_deleted_but_not_the_serving_one(pool: asyncpg.Pool, tried: int, left: int) -> None:
    revisions = Revisions(pool)
    await revisions.put(PODS, revision("first", SERVING), "A")
    for number in range(tried):
        await revisions.put(PODS, revision(f"c{number}", REJECTED, number + 2), "B")
    found = await states(revisions)
    assert len(found) == left and found["first"] is SERVING and f"c{tried - 1}" in found


async def test_a_revision_that_comes_back_is_the_newest(pool: asyncpg.Pool) -> None:
    revisions = Revisions(pool)
    await revisions.put(PODS, revision("a", REJECTED, 1), "A")
    await revisions.put(PODS, revision("b", SERVING, 2), "B")
    await revisions.put(PODS, revision("a", CANDIDATE, 3), "A")
    assert [one.digest for one in await revisions.known(PODS.uid)] == ["a", "b"]


async def test_two_controllers_leave_one_serving_revision(pool: asyncpg.Pool) -> None:
    revisions = Revisions(pool)
    await asyncio.gather(*(revisions.put(PODS, revision(f"r{n}", SERVING), "A") for n in range(8)))
    assert list((await states(revisions)).values()).count(SERVING) == 1


async def test_the_serving_revision_takes_the_digest_of_a_newer_release(pool: asyncpg.Pool) -> None:
    revisions = Revisions(pool)
    await revisions.put(PODS, revision("old", SERVING), "A")
    await revisions.put(PODS, revision("taken"), "B")
    await revisions.rename_serving(PODS.uid, "taken")
    assert (await states(revisions))["old"] is SERVING
    await revisions.rename_serving(PODS.uid, "new")
    assert await revisions.serving(PODS.uid) == ("new", "A")
