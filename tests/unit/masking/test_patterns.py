"""Tests the patterns against both corpora."""

import pytest

from for_each import for_each
from tarsy.masking import Masker, build_masker
from tarsy.masking.catalogue import GROUPS, PATTERNS
from unit.masking.corpus import Case, secrets, survivors

ALL = build_masker(["all"])
SINGLE = {name: build_masker([], [name]) for name in PATTERNS}
GROUPED = {name: build_masker([name]) for name in GROUPS}
SECRETS = secrets()
SURVIVORS = survivors()


def _cases(pattern: str) -> list[Case]:
    return [case for case in SECRETS if case.pattern == pattern]


def _leaking(masker: Masker, pattern: str) -> dict[str, list[str]]:
    """What is left of the secrets of a pattern's texts, by text."""
    return {case.text: leaks for case in _cases(pattern) if (leaks := _leaks(masker, case))}


def _leaks(masker: Masker, case: Case) -> list[str]:
    masked = masker.mask(case.text)
    return [secret for secret in case.secrets if secret in masked]


@for_each("case", SECRETS, ids=lambda case: f"{case.pattern}-{case.text[:40]!r}")
def test_a_secret_is_masked_by_its_pattern_and_what_is_around_it_stays(case: Case) -> None:
    masked = SINGLE[case.pattern].mask(case.text)
    assert [secret for secret in case.secrets if secret in masked] == []
    assert [kept for kept in case.kept if kept not in masked] == []
    assert "[MASKED_" in masked


@for_each("pattern", PATTERNS)
def test_a_secret_is_masked_with_all_groups_on(pattern: str) -> None:
    assert _leaking(ALL, pattern) == {}


@for_each("pattern", PATTERNS)
@for_each("masker", [ALL, None], ids=["all", "single"])
def test_masking_twice_is_masking_once(pattern: str, masker: Masker | None) -> None:
    masker = masker or SINGLE[pattern]
    once = {case.text: masker.mask(case.text) for case in _cases(pattern)}
    assert {text: masker.mask(masked) for text, masked in once.items()} == once


@for_each("pattern", PATTERNS)
@for_each("frame", ["{}", "2026-05-01 INFO {}", "x\n{}\ny\n", "日本語 {} 🚀", "\ud800 {} \udfff"])
def test_a_secret_is_found_wherever_it_stands(pattern: str, frame: str) -> None:
    before, after = frame.split("{}")
    for case in _cases(pattern):
        masked = ALL.mask(before + case.text + after)
        assert [secret for secret in case.secrets if secret in masked] == [], case.text
        assert masked.startswith(before), case.text
        assert masked.endswith(after), case.text


@for_each("text", SURVIVORS, ids=lambda text: repr(text[:50]))
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert ALL.mask(text) == text


def test_false_positive_rate_is_printed() -> None:
    lines = [line for text in SURVIVORS for line in text.splitlines()]
    masked = [line for text in SURVIVORS for line in ALL.mask(text).splitlines()]
    wrong = [line for line, left in zip(lines, masked, strict=True) if line != left]
    leaks = sum(bool(_leaks(ALL, case)) for case in SECRETS)
    print(f"\nfalse positives: {len(wrong)} of {len(lines)} lines ({len(wrong) / len(lines):.2%}), all groups on")
    print(f"missed: {leaks} of {len(SECRETS)} texts with secrets")
    assert wrong == []


def test_every_pattern_has_texts_in_the_corpus() -> None:
    assert {case.pattern for case in SECRETS} == set(PATTERNS)


@for_each(
    ("group", "pattern"),
    [(group, pattern) for group, names in GROUPS.items() for pattern in names if pattern in PATTERNS],
)
def test_a_group_finds_what_its_patterns_find(group: str, pattern: str) -> None:
    assert _leaking(GROUPED[group], pattern) == {}


def test_groups_are_those_of_the_reference() -> None:
    assert {name: set(members) for name, members in GROUPS.items()} == {
        "basic": {"api_key", "password"},
        "secrets": {"api_key", "password", "token", "private_key", "secret_key"},
        "security": {
            "api_key", "password", "token", "certificate", "certificate_authority_data", "email", "ssh_key",
        },
        "kubernetes": {"kubernetes_secret", "api_key", "password", "certificate_authority_data"},
        "cloud": {"aws_access_key", "aws_secret_key", "api_key", "token"},
        "all": {"kubernetes_secret", *PATTERNS},
    }  # fmt: skip
    assert len(GROUPS["all"]) == 16


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter22", "password=[MASKED_PASSWORD]"),
        ("password: hunter22", "password: [MASKED_PASSWORD]"),
        ('{"password": "hunter22"}', '{"password": "[MASKED_PASSWORD]"}'),
        ('{"password": 12345678}', '{"password": "[MASKED_PASSWORD]"}'),
        ("user: bob\npassword: hunter22\n", 'user: bob\npassword: "[MASKED_PASSWORD]"\n'),
        ("postgres://bob:hunter22@db:5432/x", "postgres://bob:[MASKED_PASSWORD]@db:5432/x"),
        ("- a@b.example\n- x\n", '- "[MASKED_EMAIL]"\n- x\n'),
        ("to: a@b.example, c@d.example\n", 'to: "[MASKED_EMAIL], [MASKED_EMAIL]"\n'),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [MASKED_TOKEN]"),
    ],
)
def test_a_tag_stands_where_the_secret_stood(text: str, masked: str) -> None:
    assert ALL.mask(text) == masked


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("token", "password", "[MASKED_TOKEN]"), ("password", "token", "[MASKED_PASSWORD]")],
)
def test_patterns_run_in_the_order_they_are_given(first: str, second: str, expected: str) -> None:
    both = "password=token:abcdefghijklmnopqrstuvwxyz"
    assert build_masker([], [first, second]).mask(both).endswith(expected)
