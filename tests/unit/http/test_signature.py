"""Tests the signatures of senders: their forms, and the time they hold."""

import hashlib
import hmac

import pytest

from tarsy.http.intake.signature import (
    MOST_SIGNATURES,
    SIGNATURE_SECONDS,
    is_one_of,
    sign,
    signatures_in,
    signed_time,
)

NOW = 1_800_000_000
ONE, OTHER = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (ONE, (ONE,)),
        (ONE.upper(), (ONE,)),
        (f"sha256={ONE}", (ONE,)),
        (f"v1={ONE}", (ONE,)),
        (f"v1={ONE}, v1={OTHER}", (ONE, OTHER)),
        (f"v2={ONE},v1={OTHER}", (OTHER,)),
        (ONE[:-1], ()),
        (f"{ONE}a", ()),
        (f"sha512={ONE}", ()),
        ("", ()),
        (",,", ()),
    ],
)
def test_signatures_of_each_form_are_found(header, found):
    assert signatures_in(header) == found


@pytest.mark.parametrize(("before", "found"), [(MOST_SIGNATURES - 1, (ONE,)), (MOST_SIGNATURES, ())])
def test_only_the_first_signatures_are_compared(before, found):
    assert signatures_in(",".join(["x"] * before + [ONE])) == found


@pytest.mark.parametrize("away", [0, SIGNATURE_SECONDS - 1, SIGNATURE_SECONDS, -SIGNATURE_SECONDS])
def test_a_time_within_the_limit_is_signed_before_the_body(away):
    assert signed_time(str(NOW + away), NOW) == f"{NOW + away}:".encode()


@pytest.mark.parametrize(
    "header", [str(NOW + SIGNATURE_SECONDS + 1), str(NOW - SIGNATURE_SECONDS - 1), "", "soon", "-1", "1e9", "9" * 13]
)
def test_another_time_is_refused(header):
    assert signed_time(header, NOW) is None


def test_the_time_is_part_of_what_is_signed():
    assert sign("key", b"1800000000:", b"body") == hmac.new(b"key", b"1800000000:body", hashlib.sha256).hexdigest()
    assert sign("key", b"", b"body") != sign("key", b"1800000000:", b"body")


def test_any_of_the_signatures_is_enough_and_one_is_needed():
    assert is_one_of(ONE, [OTHER, ONE])
    assert not is_one_of(ONE, [OTHER])
    assert not is_one_of(ONE, [])
