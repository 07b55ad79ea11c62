"""Tests that packs and responses of any bytes end in an error with a reason, within the limits."""

import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.git.pack import Pack, object_id
from tarsy.git.packet_lines import pack_of, packet_line
from tarsy.git.source import GitLimits, GitProblem, why_not_listed
from tarsy.git.tree import tree_entries
from tarsy.plan.place import Place

LIMITS = GitLimits()
BASE = b"The quick brown fox"
BASE_ID = object_id("blob", BASE, "sha1")


def packed(*entries: tuple[int, bytes, bytes, int | None]) -> bytes:
    """A pack of entries: kind, bytes before the data, data, and the size that is declared instead of the real one."""
    made = b"PACK" + (2).to_bytes(4, "big") + len(entries).to_bytes(4, "big")
    for kind, before, data, size in entries:
        left = len(data) if size is None else size
        byte, left = kind << 4 | left & 15, left >> 4
        while left:
            made += bytes([byte | 0x80])
            byte, left = left & 0x7F, left >> 7
        made += bytes([byte]) + before + zlib.compress(data)
    return made + hashlib.sha1(made).digest()


def delta(*instructions: bytes, before: int = len(BASE), after: int) -> bytes:
    return bytes([before, after]) + b"".join(instructions)


def test_object_id_is_that_of_git() -> None:
    assert object_id("blob", b"", "sha1") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert object_id("blob", b"", "sha256") == "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"


def test_difference_is_applied_also_before_its_base() -> None:
    difference = delta(b"\x90\x04", b"\x05quick", after=9)
    pack = Pack(packed((7, bytes.fromhex(BASE_ID), difference, None), (3, b"", BASE, None)), "sha1", LIMITS)
    assert pack.get(object_id("blob", b"The quick", "sha1")).content == b"The quick"
    assert pack.get(BASE_ID).content == BASE


@pytest.mark.parametrize(
    "broken",
    [
        delta(b"\x90\x04", before=3, after=4),  # another base
        delta(b"\x90\x04", after=3),  # more than declared
        delta(b"\x90\x04", after=5),  # less than declared
        delta(b"\x91\x10\x09", after=9),  # beyond the end of the base
        delta(b"\x00", after=0),  # a reserved instruction
        delta(b"\x91", after=1),  # cut off
        b"",
        b"\xff" * 20,
    ],
)
def test_broken_difference_is_refused(broken: bytes) -> None:
    with pytest.raises(GitProblem):
        Pack(packed((3, b"", BASE, None), (7, bytes.fromhex(BASE_ID), broken, None)), "sha1", LIMITS)


@pytest.mark.parametrize("size", [0, 9, 11, 1 << 40])
def test_object_of_another_size_than_declared_is_refused(size: int) -> None:
    with pytest.raises(GitProblem):
        Pack(packed((3, b"", b"0123456789", size)), "sha1", LIMITS)


def test_data_that_unpack_to_more_than_declared_are_not_unpacked() -> None:
    with pytest.raises(GitProblem):
        Pack(packed((3, b"", bytes(1 << 26), 10)), "sha1", LIMITS)


def test_all_objects_together_have_a_largest_size() -> None:
    data = packed((3, b"", bytes(500), None), (3, b"", bytes(501), None))
    assert Pack(data, "sha1", GitLimits(unpacked_bytes=1_001))
    with pytest.raises(GitProblem) as caught:
        Pack(data, "sha1", GitLimits(unpacked_bytes=1_000))
    assert caught.value.reason == "GitTooLarge"


@given(st.binary(max_size=200), st.integers(0, 3))
def test_no_pack_ends_in_another_error(data: bytes, kept: int) -> None:
    whole = packed((3, b"", BASE, None), (7, bytes.fromhex(BASE_ID), delta(b"\x90\x04", after=4), None))
    for made in (data, b"PACK\0\0\0\2\0\0\0\1" + data, whole[: len(whole) * kept // 3] + data):
        try:
            pack = Pack(made, "sha1", LIMITS)
        except GitProblem:
            continue
        assert all(object_id(pack.get(oid).kind, pack.get(oid).content, "sha1") == oid for oid in pack)


@given(st.binary(max_size=200))
def test_no_response_ends_in_another_error(data: bytes) -> None:
    for made in (data, packet_line("packfile") + data):
        try:
            pack_of(made)
        except GitProblem as problem:
            assert problem.message.split(":")[0] in ("url", "commit")
    try:
        list(tree_entries(data, 20))
    except GitProblem as problem:
        assert problem.reason == "GitUnavailable"


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("https://git.example.com/a", True),
        ("https://GIT.example.com:443/a", True),
        ("https://git.example.com:8443/a", False),
        ("https://other.example.com:8443/a", True),
        ("https://other.example.com/a", False),
        ("https://git.example.com.evil.test/a", False),
        ("https://evil.test/git.example.com", False),
    ],
)
def test_only_listed_hosts_are_read(url: str, listed: bool) -> None:
    hosts = ("git.example.com", "Other.Example.com:8443")
    why = why_not_listed(Place.of(url), hosts)
    assert (why is None) == listed
    assert why is None or "--git-host" in why
    assert why_not_listed(Place.of(url), ()) is not None
