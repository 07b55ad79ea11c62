"""Families of how secrets are written, as the masker is set by default: what it must find, and what must stay.

`families.yaml` is what the rules were written from, `held_out.yaml` was not, and was run after them.
"""

import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from properties import examples
from tarsy.masking import build_masker, default_masker
from tarsy.masking.disguise import Disguise
from tarsy.record.text import without_invisible
from unit.masking.corpus import Case, secrets, survivors
from unit.masking.invisible import INVISIBLE

DEFAULT = default_masker()
FAMILIES = secrets("families.yaml")
HELD_OUT = secrets("held_out.yaml")
EVERY = [*FAMILIES, *HELD_OUT]
ORDINARY = [*survivors("ordinary.yaml"), *survivors()]
LOGS = "2026-05-01T10:00:00Z INFO reconciled name=web-7d4b9c6f5d-x2x4q took=12ms\n"


def _name(case: Case) -> str:
    return f"{case.pattern}-{case.text[:40]!r}"


@for_each("case", EVERY, ids=_name)
def test_a_secret_of_a_family_is_masked_and_what_is_around_it_stays(case: Case) -> None:
    masked = DEFAULT.mask(case.text)
    assert [secret for secret in case.secrets if secret in masked] == []
    assert [kept for kept in case.kept if kept not in masked] == []
    assert DEFAULT.mask(masked) == masked


@pytest.mark.parametrize("frame", [LOGS + "{}\n" + LOGS, "日本語 🚀\n{}\nкириллица", "\ud800\n{}\n\udfff"])
def test_a_secret_of_a_family_is_found_between_other_lines(frame: str) -> None:
    before, after = frame.split("{}")
    for case in EVERY:
        masked = DEFAULT.mask(before + case.text + after)
        assert [secret for secret in case.secrets if secret in masked] == [], case.text
        assert masked.startswith(before) and masked.endswith(after), case.text


@for_each("text", ORDINARY, ids=lambda text: repr(text[:50]))
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    masked = DEFAULT.mask(text)
    wrong = [(line, left) for line, left in zip(text.splitlines(), masked.splitlines(), strict=True) if line != left]
    assert wrong == []


def test_the_counts_are_printed() -> None:
    for name, cases in (("families", FAMILIES), ("held out", HELD_OUT)):
        missed = [case for case in cases if any(secret in DEFAULT.mask(case.text) for secret in case.secrets)]
        print(f"\n{name}: {len(missed)} of {len(cases)} missed")
    wrong = [text for text in ORDINARY if DEFAULT.mask(text) != text]
    print(f"false positives: {len(wrong)} of {len(ORDINARY)} texts")
    assert (len(FAMILIES) >= 150, wrong) == (True, [])


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


def _entities(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)


def _full_width(text: str) -> str:
    return "".join(chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character for character in text)


def _unseen(text: str) -> str:
    drawn = random.Random(text)
    return "".join(character + drawn.choice(["", "\u200b", "\u2060", "\u00ad", "\ufe0f"]) for character in text)


DISGUISES = {
    "percent": _percent,
    "percent twice": lambda text: _percent(_percent(text)),
    "escapes": _escaped,
    "entities": _entities,
    "full width": _full_width,
    "not seen": _unseen,
    "percent of full width": lambda text: _percent(_full_width(text)),
}


@for_each("disguise", DISGUISES)
@for_each("plain", ["password=hunter22", "api_key: " + "a1B2" * 6, "postgres://bob:hunter22@db/x"])
def test_a_disguised_secret_is_masked_where_it_stands(disguise: str, plain: str) -> None:
    text = DISGUISES[disguise](plain)
    masked = DEFAULT.mask(f"before {text} after\nnext")
    assert "[MASKED_" in masked and text not in masked
    assert DISGUISES[disguise]("hunter22") not in masked and DISGUISES[disguise]("a1B2" * 6) not in masked
    assert masked.startswith("before ") and masked.endswith("\nnext")
    assert DEFAULT.mask(masked) == masked


@for_each("char", INVISIBLE, ids=lambda char: f"{ord(char):x}")
def test_a_secret_that_is_split_by_what_no_prompt_keeps_is_masked(char: str) -> None:
    text = f"before pass{char}word{char}=hun{char}ter{char}22 after"
    masked = DEFAULT.mask(text)
    assert "[MASKED_" in masked and "22" not in without_invisible(masked).text


@pytest.mark.parametrize("line", ["x%20a://b:c@d", "x&lt;a://b:c@d", "x%C3%20a://b:c@d"])
@pytest.mark.parametrize("disguised", ["a%3Db", "pass\u200bword=hunter22", "x\u00a0y"])
def test_a_disguised_line_does_not_change_how_its_neighbours_are_masked(line: str, disguised: str) -> None:
    first, second, third = DEFAULT.mask(f"{disguised}\n{line}\n{disguised}").split("\n")
    assert second == DEFAULT.mask(line)
    assert first == third == DEFAULT.mask(disguised)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("smtp://bob@example.com:hunter22@mail:587", "smtp://bob@example.com:[MASKED_PASSWORD]@mail:587"),
        ("smtp://" + "aB3d" * 6 + "@h.co:hunter22@x", "smtp://[MASKED_PASSWORD]@h.co:[MASKED_PASSWORD]@x"),
        (
            "https://a:hunter22@b db://c:hunter22@d x://e",
            "https://a:[MASKED_PASSWORD]@b db://c:[MASKED_PASSWORD]@d x://e",
        ),
    ],
)
def test_each_url_rule_looks_at_what_the_one_before_left(url: str, masked: str) -> None:
    assert build_masker(["basic"]).mask(url) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=>hunter22", "password=>[MASKED_PASSWORD]"),
        ("password:=\\x22hunter", "password:[MASKED_PASSWORD]"),
        ("pwd=>\\?q=1 x", "pwd=[MASKED_PASSWORD] x"),
        ("pwd=pwd= hunter22", "pwd=pwd= [MASKED_PASSWORD]"),
        ("password=12345 x", "password=12345 x"),
        ("password=123456 x", "password=[MASKED_PASSWORD] x"),
        ("password=1234567 x", "password=[MASKED_PASSWORD] x"),
    ],
)
def test_a_bare_password_begins_behind_its_separator(text: str, masked: str) -> None:
    assert build_masker(["basic"]).mask(text) == masked


@given(st.text(st.sampled_from("ab=%3D25\\u0022&quot;#x:\u200b\uff50\uff1a\u0301 \n"), max_size=60))
@examples(400)
def test_every_piece_of_what_a_line_means_is_traced_to_where_it_stood(text: str) -> None:
    line = text.encode()
    for step in Disguise().plain(line):
        origins = step.origins([(index, index + 1, b"tag") for index in range(len(step.text))])
        assert all(0 <= start < end <= len(line) and tag == b"tag" for start, end, tag in origins)
        assert [start for start, *_ in origins] == sorted(start for start, *_ in origins)
        line = step.text


@given(st.text(st.sampled_from("ab1=%3D25\\u0022&quot;:\u200b\uff50\uff1apassword token\n"), max_size=80))
@examples(300)
def test_masking_disguised_text_twice_is_masking_it_once(text: str) -> None:
    once = DEFAULT.mask(text)
    assert DEFAULT.mask(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "user: bob\npassword: >-\n  hunter22\nhost: db\n",
        "db:\n  passwort: hunter22\n  token: |\n    " + "a1B2" * 6 + "\n  x: y\n",
        '{"kennwort": "hunter22", "cookie": "sid=abcdefgh1", "n": 1}',
    ],
)
def test_masked_documents_keep_their_shape(text: str) -> None:
    before, after = yaml.safe_load(text), yaml.safe_load(DEFAULT.mask(text))
    assert before != after and list(before) == list(after)


@for_each("case", [case for case in FAMILIES if case.pattern == "nodes"], ids=_name)
def test_a_value_after_an_anchor_or_a_tag_is_not_left_without_it(case: Case) -> None:
    masked = DEFAULT.mask(case.text)
    assert [value for value in ("hunter", "aHVudGVyMjI=") if value in masked] == []
