"""Tests that a streaming text shows no secret, and that shown text is never retracted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from tarsy.masking import CustomPattern, Masker, Maskers, StreamingMasker, build_masker, default_masker
from tarsy.plan.model import MaskingPlan
from unit.masking.corpus import Case, secrets, survivors

DEFAULT = default_masker()
ALL = build_masker(["all"])
BEFORE = "The pod checkout-7d restarts again and again.\nWhat its log says:\n\n"
AFTER = " and that is all there was.\nSo it has to be rotated. "


def shown(masker: Masker | None, pieces: list[str]) -> list[str]:
    unfolding = StreamingMasker(masker)
    return [unfolding.add(piece) for piece in pieces]


def cut(text: str, seed: int, longest: int) -> list[str]:
    generator, pieces = random.Random(seed), []
    while text:
        size = generator.randint(1, longest)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


@pytest.mark.sweep("test_patterns masks each secret")
@pytest.mark.parametrize("longest", [1, 7, 40])
@pytest.mark.parametrize("case", secrets(), ids=lambda case: f"{case.pattern}-{case.text[:40]!r}")
def test_no_part_of_a_secret_is_shown_wherever_the_stream_is_cut(case: Case, longest: int) -> None:
    for masker in (ALL, build_masker([], [case.pattern])):
        for text in (case.text, BEFORE + case.text + AFTER):
            seen = "".join(shown(masker, cut(text, longest, longest)))
            assert [secret for secret in case.secrets if secret in seen] == []
            assert masker.mask(text).startswith(seen)


@pytest.mark.sweep("test_families masks each secret")
@pytest.mark.parametrize("longest", [1, 9])
@pytest.mark.parametrize(
    "case",
    [*secrets("families.yaml"), *secrets("held_out.yaml")],
    ids=lambda case: f"{case.pattern}-{case.text[:40]!r}",
)
def test_no_part_of_a_secret_of_a_family_is_shown(case: Case, longest: int) -> None:
    for text in (case.text, BEFORE + case.text + "\n" + AFTER):
        seen = "".join(shown(DEFAULT, cut(text, longest, longest)))
        assert [secret for secret in case.secrets if secret in seen] == []
        assert DEFAULT.mask(text).startswith(seen)


@pytest.mark.sweep("test_families keeps each text")
@pytest.mark.parametrize("text", survivors("ordinary.yaml"))
def test_ordinary_text_is_shown_as_it_will_be_recorded(text: str) -> None:
    assert text.startswith("".join(shown(DEFAULT, cut(text, 3, 12))))


@pytest.mark.sweep("test_patterns keeps each text")
@pytest.mark.parametrize("text", survivors())
def test_what_is_shown_is_the_beginning_of_what_is_recorded(text: str) -> None:
    seen = "".join(shown(ALL, cut(text, 3, 12)))
    assert ALL.mask(text).startswith(seen)


@given(
    st.text(st.sampled_from("ab1 :=-\n\"'\\{}[],@./kindSecretdatapasswordtokenkey"), max_size=160),
    st.integers(1, 9),
)
@examples(300)
def test_near_misses_are_never_taken_back(text: str, longest: int) -> None:
    seen = "".join(shown(ALL, cut(text, 1, longest)))
    assert ALL.mask(text).startswith(seen)


def test_words_are_shown_as_they_end() -> None:
    assert shown(DEFAULT, ["The po", "d resta", "rts.", " It", "\n"]) == ["The ", "pod ", "", "restarts. ", "It\n"]


def test_a_line_that_may_hold_a_secret_is_shown_when_it_is_complete() -> None:
    told = shown(DEFAULT, ["The password", ": hunter22xyz", " was", " used.", "\nNext", " one"])
    assert told == ["The ", "", "", "", "password: [MASKED_PASSWORD] was used.\n", "Next "]


def test_a_key_that_was_cut_in_two_is_not_shown() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n"] * 3
    told = "".join(shown(DEFAULT, ["the end of it:\n", *lines, "-----END RSA PRI", "VATE KEY-----\nGone. "]))
    assert told == "the end of it:\n"


def test_words_that_look_like_a_key_are_shown_when_they_turn_out_to_be_none() -> None:
    told = shown(DEFAULT, ["See Deployment/checkoutservice", " there", " now"])
    assert "".join(told) == "See Deployment/checkoutservice there "


@pytest.mark.parametrize(
    "beginning",
    [
        '{"apiVersion": "v1", "data": {"a": "aHVudGVyMg=="}, ',
        "data:\n  a: aHVudGVyMg==\n",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n",
        "- name: DB_PASSWORD\n  value: hunter22\n",
    ],
)
def test_where_a_secret_may_span_lines_the_text_stops(beginning: str) -> None:
    unfolding = StreamingMasker(DEFAULT)
    assert unfolding.add("Look:\n" + beginning) == "Look:\n"
    assert unfolding.stopped
    assert unfolding.add('"kind": "Secret"}\nand so on ') == ""


def test_patterns_of_users_need_the_whole_text() -> None:
    unfolding = StreamingMasker(build_masker(["basic"], custom=[CustomPattern("ticket", "T-[0-9]+", "[T]")]))
    assert unfolding.add("The pod ") == ""
    assert unfolding.stopped


def test_a_line_that_never_ends_stops() -> None:
    unfolding = StreamingMasker(DEFAULT)
    for _ in range(70):
        assert unfolding.add("x" * 1000) == ""
    assert unfolding.stopped


def test_text_comes_as_it_is_where_nothing_is_masked() -> None:
    maskers = Maskers()
    assert maskers.unfolding(MaskingPlan(enabled=False)).add("password: hunt") == "password: hunt"
    assert maskers.unfolding(MaskingPlan()).add("password: hunt") == ""
