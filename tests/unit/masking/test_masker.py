"""Tests the guarantees of a masker for any text: exactness, names, custom patterns, time."""

import json
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from properties import examples
from tarsy.masking import CustomPattern, InvalidPattern, Masker, MaskingFailed, build_masker, engine
from tarsy.masking.engine import FirstLook
from tarsy.masking.kubernetes_secret import KubernetesSecrets
from tarsy.masking.masker import _BuiltIn
from tarsy.masking.triggers import Piece
from unit.masking.corpus import secrets, survivors

ALL = build_masker(["all"])
LONG = 20.0  # of the processor, on a slow machine; what grows with the square takes minutes
MEGABYTE = 1_000_000
SLOW = CustomPattern("greedy", "(?s)x.*y|x", "-")


class _Everything:
    """Triggers that tell every rule to read the whole text for itself."""

    def __init__(self, patterns: Sequence[tuple[bytes, bool]]) -> None:
        self._all = tuple(range(len(patterns)))

    def among(self, text: bytes) -> tuple[int, ...]:
        return self._all

    def likely(self, text: bytes) -> tuple[int, ...]:
        return self._all

    def pieces(self, text: bytes) -> list[Piece]:
        return [(0, len(text), self._all)]


class _AnySecrets(KubernetesSecrets):
    """The structural masker, which reads every text."""

    def named(self, text: bytes) -> bool:
        return True


@pytest.fixture(scope="module")
def unfiltered() -> Masker:
    """A masker of everything without a first look."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tarsy.masking.masker.Triggers", _Everything)
        patch.setattr("tarsy.masking.masker._built_in", _BuiltIn)
        patch.setattr("tarsy.masking.masker._secrets", _AnySecrets)
        return build_masker(["all"])


@given(st.text(st.characters(codec=None, categories=None), max_size=200))
@examples(150)
def test_any_text_can_be_masked_and_masking_twice_is_masking_once(text: str) -> None:
    once = ALL.mask(text)
    assert ALL.mask(once) == once


@given(st.text(st.sampled_from("ab1 :=-\n\"'\\{}[],@./kindSecretdatapasswordtokenkey"), max_size=120))
@examples(300)
def test_near_misses_are_masked_alike_twice(text: str) -> None:
    once = ALL.mask(text)
    assert ALL.mask(once) == once


@given(st.text(st.sampled_from("ab1 :=-\n\"'\\{}[],@./kindSecretdatapasswordtokenkey"), max_size=120))
@examples(200)
def test_the_first_look_misses_nothing(unfiltered: Masker, text: str) -> None:
    assert ALL.mask(text) == unfiltered.mask(text)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "filling",
    [
        pytest.param("", id="alone"),
        pytest.param(
            "2026-05-01 INFO all is well\n" * 300, id="between logs", marks=pytest.mark.heavy("a megabyte of logs each")
        ),
    ],
)
def test_the_first_look_misses_nothing_of_the_corpora(unfiltered: Masker, filling: str) -> None:
    families = [*secrets("families.yaml"), *secrets("held_out.yaml")]
    for text in [*(case.text for case in [*secrets(), *families]), *survivors(), *survivors("ordinary.yaml")]:
        assert ALL.mask(filling + text + "\n" + filling) == unfiltered.mask(filling + text + "\n" + filling)


@pytest.mark.parametrize("line", ["password=hunter22\n", "bob@example.com ", 'password: "a'], ids=repr)
def test_a_text_of_nothing_but_secrets_ends_in_a_tag(line: str) -> None:
    masked = ALL.mask(line * (MEGABYTE // len(line)) + "the end")
    assert len(masked) < MEGABYTE // 4
    assert masked.endswith("]")
    assert ALL.mask(masked) == masked


def test_a_long_list_of_secrets_keeps_all_else() -> None:
    lines = [f"- user{number}: bob{number}@example.com, password=hunter{number}" for number in range(10_000)]
    masked = ALL.mask("\n".join(lines)).split("\n")
    assert len(masked) == len(lines)
    assert masked[-1].startswith('- user9999: "[MASKED_EMAIL], ')


@pytest.mark.parametrize("lone", ["\ud800", "\udfff", "a\udc80b", "\U000f0000\ud800\U0010ffff", "\ud83d x \ude00"])
def test_lone_surrogates_are_kept_exactly(lone: str) -> None:
    assert ALL.mask(lone) == lone
    assert ALL.mask(f"{lone} password=hunter22 {lone}") == f"{lone} password=[MASKED_PASSWORD] {lone}"
    assert ALL.mask(f'{{"password": "x{lone}yyyyyy"}}') == '{"password": "[MASKED_PASSWORD]"}'


def test_offsets_are_those_of_characters_and_not_of_bytes() -> None:
    assert ALL.mask("ключ 日本 🚀 token=" + "a1B2" * 10 + " ñ 🚀") == "ключ 日本 🚀 token=[MASKED_TOKEN] ñ 🚀"
    custom = build_masker([], custom=[CustomPattern("name", "[äöü]{2}.", "-")])
    assert custom.mask("aäö🚀ü") == "a-ü"


def test_a_masker_of_nothing_leaves_everything() -> None:
    assert build_masker([]).mask("password=hunter22") == "password=hunter22"
    assert ALL.mask("") == ""


@for_each("tag", ["[MASKED_PASSWORD]", "[MASKED_SECRET_DATA]", "[MASKED_ANYTHING_1]"])
@for_each("form", ["{}", "password={}", "password: {}\n", '"token": "{}"', "Bearer {}", "a://b:{}@c/", "x\n- {}\n"])
def test_a_tag_survives(tag: str, form: str) -> None:
    assert ALL.mask(form.format(tag)) == form.format(tag)


def test_a_custom_pattern_does_not_take_tags_apart() -> None:
    masker = build_masker(["basic"], custom=[CustomPattern("capitals", "[A-Z_]{4,}", "[CAPS]")])
    assert masker.mask("LOUD password=hunter22") == "[CAPS] password=[MASKED_PASSWORD]"


def test_custom_patterns_run_last_and_may_use_their_groups() -> None:
    customs = [
        CustomPattern("badge", r"badge (?P<kind>[a-z])-(\d+)", r"badge \g<kind>-[MASKED_BADGE]"),
        CustomPattern("path", r"(C:)[^ ]+", r"\1\\..."),
    ]
    masker = build_masker(["basic"], custom=customs)
    assert masker.mask("badge x-123 at C:\\temp password=hunter22") == (
        "badge x-[MASKED_BADGE] at C:\\... password=[MASKED_PASSWORD]"
    )


@for_each(
    ("arguments", "name", "part"),
    [
        ((["nosuch"],), "nosuch", "basic, secrets, security, kubernetes, cloud, all"),
        (([], ["nosuch"]), "nosuch", "kubernetes_secret"),
        (([], [], [CustomPattern("p", "(", "x")]), "p", "missing )"),
        (([], [], [CustomPattern("p", "(?=a)b", "x")]), "p", "lookahead"),
        (([], [], [CustomPattern("p", "(?<!a)b", "x")]), "p", "lookbehind"),
        (([], [], [CustomPattern("p", r"(a)\1", "x")]), "p", "backreferences"),
        (([], [], [CustomPattern("p", "a++b", "x")]), "p", "possessive"),
        (([], [], [CustomPattern("p", "a*", "x")]), "p", "empty text"),
        (([], [], [CustomPattern("p", "", "x")]), "p", "empty text"),
        (([], [], [CustomPattern("p", "(?:a{30}){30}", "x")]), "p", "too large"),
        (([], [], [CustomPattern("p", "(?:a{1000}){1000}", "x")]), "p", "repetition"),
        (([], [], [CustomPattern("p", "\ud800", "x")]), "p", "surrogate"),
        (([], [], [CustomPattern("p", "a", "\ud800")]), "p", "surrogate"),
        (([], [], [CustomPattern("p", "a", r"\1")]), "p", "group 1"),
        (([], [], [CustomPattern("p", "a", r"\g<n>")]), "p", "group 'n'"),
        (([], [], [CustomPattern("p", "a", "\\x")]), "p", "backslash"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_with_a_remedy(
    arguments: tuple[list[str]], name: str, part: str
) -> None:
    with pytest.raises(InvalidPattern) as caught:
        build_masker(*arguments)
    assert caught.value.name == name
    assert repr(name) in caught.value.sentence
    assert part in caught.value.sentence


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(x+x+)+y", "(.*a){20}b", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_that_hangs_other_engines_does_not_hang_this_one(pattern: str) -> None:
    masker = build_masker([], custom=[CustomPattern("evil", pattern, "-")])
    begun = time.process_time()
    masker.mask("a" * 100_000 + "!")
    assert time.process_time() - begun < LONG


@pytest.mark.heavy("slow patterns; test_many_slow_patterns is beside it")
def test_a_pattern_that_looks_ahead_to_the_end_at_every_match_is_stopped() -> None:
    masker = build_masker([], custom=[SLOW])
    with pytest.raises(MaskingFailed, match="'greedy' took too long"):
        masker.mask("x" * 300_000)


@pytest.mark.heavy("slow patterns; test_many_slow_patterns is beside it")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_slow_pattern_costs_its_own_finds_and_no_others(place: int) -> None:
    others = [CustomPattern("badge", r"badge \d+", "[BADGE]"), CustomPattern("ticket", r"T-\d+", "[TICKET]")]
    masker = build_masker(["basic"], custom=[*others[:place], SLOW, *others[place:]])
    begun = time.process_time()
    with pytest.raises(MaskingFailed) as caught:
        masker.mask("x" * 300_000 + " badge 4711 for T-12, password: hunter22")
    assert caught.value.left == "x" * 300_000 + " [BADGE] for [TICKET], password: [MASKED_PASSWORD]"
    assert time.process_time() - begun < LONG


def test_many_slow_patterns_take_no_longer_than_one() -> None:
    many = [CustomPattern(f"p{number}", f"(?s)x.*{number}y|x", "x") for number in range(32)]
    begun = time.process_time()
    with pytest.raises(MaskingFailed, match="'p0', 'p1'"):
        build_masker(["basic"], custom=many).mask("x" * 60_000)
    assert time.process_time() - begun < 3.0


def test_a_first_look_that_runs_out_of_memory_leaves_every_rule_to_look_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = {5: b"a", 6: b"b", 7: b"c"}
    assert FirstLook(rules).among(b"b") == (6,)
    exhausted = SimpleNamespace(Add=lambda pattern: 0, Compile=lambda: None, Match=lambda text: [])  # so RE2 reports it
    monkeypatch.setattr(engine.re2, "Set", SimpleNamespace(SearchSet=lambda options: exhausted))
    assert FirstLook(rules).among(b"b") == (5, 6, 7)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        '"' * 200_000,
        '\\"' * 100_000 + "kind: Secret data:",
        "kind: Secret\n" * 15_000,
        "kind: Secret\ndata:\n" * 10_000,
        '{"kind":"Secret","data":{' * 8_000,
        '{"a":' * 40_000 + '"kind":"Secret","data":{"a":"b"}',
        '"kind":"Secret","data":{"a":"b"}' + "{{}" * 60_000 + '"kind":"Secret","data":{"a":"b"}',
        "".join(f"{' ' * n}kind: Secret\n{' ' * n}data:\n" for n in range(390)),
        '"kind: Secret\\ndata:\\n  a: b"\n' * 6_000,
        "kind:Secret," + "data:{x:yyyyyyyyyyyyyyyy:" * 8_000,
        "".join(f"{' ' * n}kind: Secret\n" for n in range(390)) + "data:\n" + "a: b\n" * 10_000,
        "-----BEGIN PRIVATE KEY-----\n" * 7_000,
        "eyJ" * 70_000,
        "password: \"a" * 18_000,
        "password: 'a password: \"b" * 9_000,
        "a://a:a" * 30_000,
        "name: password " * 14_000,
        " " * 200_000 + "kind: Secret\ndata:",
        "%253D" * 40_000,
        "\u200b" * 60_000,
        "密码：" * 20_000,
        "password%3Dhunter22" * 10_000,
        ("A" * 64 + "\n") * 3_000,
        ("aB3d" * 16 + "\n") * 3_000,
        "eyJ0eXAiOiJKV1QiLCJhbGciOi\n" * 7_000,
        "cGFzc3dvcm" * 20_000,
        "mysql -u a " * 18_000,
        "mysql -pA " * 20_000,
        "<a name='password' " * 10_000,
        "<password " * 20_000,
        "<a value='x' " * 15_000,
        "a://b:c/" * 25_000,
        "a://b:@" * 28_000,
        "echo a:b|" * 22_000,
        "docker login " * 15_000,
        "machine a login b\n" * 11_000,
        "--a-b-c-password" * 12_000,
        "user a on ~ " * 16_000,
        "password=a" + "\\" * 100_000 + " x",
        "aB3d" * 16 + "\\n" * 40_000 + "aB3d" * 16 + "\naB3daB3daB3d\n",
        "aB3d" * 16 + "\n" + ">" * 40_000 + "aB3d" * 16 + "\naB3daB3daB3d\n",
        "https://a:b@" + "a@" * 120_000 + "x",
        "https://a:b@" + "a." * 60_000 + "_/",
        "kind: Secret\ndata:\n  a: b" + " " * 200_000 + "x\n",
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
@pytest.mark.timeout(300)
def test_no_text_is_slow(text: str) -> None:
    begun = time.process_time()
    ALL.mask(text)
    assert time.process_time() - begun < LONG


_WORDS = st.sampled_from(["password", "token", "api_key", "email", "name", "host", "db_password", "secretKey", "note"])
_SCALARS = st.one_of(
    st.sampled_from(
        ["hunter22", "bob@example.com", "two words here", "AKIA" + "A1" * 8, "a1B2" * 10, "https://u:pass1@h/x"]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    st.integers(0, 10**10),
    st.booleans(),
    st.none(),
)
_DOCUMENTS = st.recursive(
    st.dictionaries(_WORDS, _SCALARS, min_size=1, max_size=4),
    lambda inner: st.dictionaries(_WORDS, st.one_of(inner, st.lists(_SCALARS, max_size=3)), min_size=1, max_size=3),
    max_leaves=8,
)


def _shape(value: object) -> object:
    match value:
        case dict():
            return {key: _shape(part) for key, part in value.items()}
        case list():
            return [_shape(part) for part in value]
        case _:
            return "scalar"


@given(_DOCUMENTS, st.sampled_from([None, 2]))
@examples(200)
def test_masked_json_keeps_its_shape(document: dict[str, object], indent: int | None) -> None:
    assert _shape(json.loads(ALL.mask(json.dumps(document, indent=indent)))) == _shape(document)


@given(_DOCUMENTS)
@examples(200)
def test_masked_yaml_keeps_its_shape(document: dict[str, object]) -> None:
    text = yaml.safe_dump(document, width=1000)
    assert _shape(yaml.safe_load(ALL.mask(text))) == _shape(yaml.safe_load(text))


def test_the_structural_masker_comes_before_the_patterns() -> None:
    masked = build_masker(["all"]).mask("apiVersion: v1\nkind: Secret\ndata:\n  password: aHVudGVyMjIxMjM0NTY3ODkw\n")

    assert "MASKED_SECRET_DATA" in masked and "aHVudGVyMjI" not in masked
    assert "MASKED_PASSWORD" not in masked
