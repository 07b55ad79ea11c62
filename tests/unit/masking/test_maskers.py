"""Tests the settings of objects: masking, caching, and validation."""

import pytest

from tarsy.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS, InvalidPattern, Maskers, default_masker, faults, usable
from tarsy.plan.model import CustomMask, MaskingPlan

TEXT = "password=hunter22 badge 4711 of bob@example.com"


def _own(pattern: str, replacement: str = "-") -> CustomMask:
    return CustomMask(name="own", pattern=pattern, replacement=replacement)


def test_a_setting_that_says_nothing_masks_as_the_default_does() -> None:
    assert Maskers().of(MaskingPlan())(TEXT) == default_masker().mask(TEXT) != TEXT
    assert (MaskingPlan().groups, MaskingPlan().patterns) == (DEFAULT_GROUPS, DEFAULT_PATTERNS)


@pytest.mark.parametrize(
    ("setting", "masked"),
    [
        (MaskingPlan(enabled=False, groups=("nosuch",)), TEXT),
        (MaskingPlan(groups=(), patterns=()), TEXT),
        (MaskingPlan(groups=("basic",), patterns=()), "password=[MASKED_PASSWORD] badge 4711 of bob@example.com"),
        (MaskingPlan(groups=(), patterns=("email",)), "password=hunter22 badge 4711 of [MASKED_EMAIL]"),
        (
            MaskingPlan(groups=(), patterns=(), custom=(_own(r"(badge )\d+", r"\1[B]"),)),
            "password=hunter22 badge [B] of bob@example.com",
        ),
    ],
    ids=["off", "empty", "a group", "a pattern", "its own"],
)
def test_a_setting_masks_what_it_says(setting: MaskingPlan, masked: str) -> None:
    assert Maskers().of(setting)(TEXT) == masked


def test_equal_settings_share_a_masker_and_the_oldest_goes_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[tuple[str, ...]] = []

    class Counted:
        def __init__(self, groups: tuple[str, ...], patterns: object, custom: object) -> None:
            built.append(groups)

        def mask(self, text: str) -> str:
            return text

    monkeypatch.setattr("tarsy.masking.maskers.build_masker", Counted)
    maskers = Maskers(most=2)
    for group in ("basic", "basic", "cloud", "basic", "secrets", "basic", "cloud"):
        maskers.of(MaskingPlan(groups=(group,)))
    assert built == [("basic",), ("cloud",), ("secrets",), ("cloud",)]


def test_every_entry_that_cannot_be_used_is_told_by_its_place() -> None:
    setting = MaskingPlan(
        groups=("basic", "nosuch"), patterns=("email", "other"), custom=(_own("a"), _own("("), _own("a", r"\1"))
    )
    found = [(fault.part, fault.index) for fault in faults(setting)]
    assert found == [("groups", 1), ("patterns", 1), ("custom", 1), ("custom", 2)]
    assert faults(MaskingPlan()) == []


def test_a_setting_is_checked_without_a_masker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reconcile checks settings in the event loop: it must not compile hundreds of built-in rules there."""

    def compile_rules(*_: object) -> None:
        raise AssertionError("built-in rules are compiled")

    monkeypatch.setattr("tarsy.masking.masker.Masker", compile_rules)
    assert faults(MaskingPlan(groups=("all",), patterns=("email",), custom=(_own("a"),))) == []


def test_one_wrong_entry_costs_neither_the_other_entries_nor_the_usual_patterns() -> None:
    badge = CustomMask(name="badge", pattern=r"badge \d+", replacement="[B]")
    setting = MaskingPlan(groups=("basic", "nosuch"), patterns=("base64_short", "other"), custom=(badge, _own("(")))
    rest = usable(setting)
    assert rest.groups == (*DEFAULT_GROUPS, "basic")
    assert rest.patterns == (*DEFAULT_PATTERNS, "base64_short")
    assert rest.custom == (badge,)
    assert Maskers().of(rest)(TEXT) == "password=[MASKED_PASSWORD] [B] of [MASKED_EMAIL]"


@pytest.mark.parametrize("setting", [MaskingPlan(groups=("basic",)), MaskingPlan(enabled=False, groups=("nosuch",))])
def test_a_setting_that_can_be_used_or_is_off_stays(setting: MaskingPlan) -> None:
    assert usable(setting) is setting


def test_a_setting_that_cannot_be_used_makes_no_masker() -> None:
    with pytest.raises(InvalidPattern, match="nosuch"):
        Maskers().of(MaskingPlan(groups=("nosuch",)))
