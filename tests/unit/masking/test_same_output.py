"""Tests that faster ways of finding the same secrets find the same: against plain references and recorded outputs.

After a deliberate change of what is masked, `python -m unit.masking.test_same_output` in `tests/` prints the outputs to
record; the other tests of this folder judge the change.
"""

import hashlib
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.bench.masking import inputs

from properties import examples
from tarsy.masking import build_masker, default_masker
from tarsy.masking.drawn import _BREAKS, _last_line
from tarsy.masking.engine import Regex
from tarsy.masking.rules import TOKEN, Rule
from tarsy.masking.rules.parts import environment
from tarsy.masking.validators import credential, entry_value, last_word, password_line, web_password
from unit.masking.corpus import secrets, survivors

RECORDED = Path(__file__).parent / "corpus" / "outputs.yaml"
SIZE = 50_000
LAST_LINE = re.compile(rb"(?:\s|\\+[nrt]|[>|])+([A-Za-z0-9+/=_.-]*)$")
BREAKS = re.compile(rb"(?:\s|\\+[nrt]|[>|])+")
CORPORA = ("secrets.yaml", "families.yaml", "held_out.yaml", "survivors.yaml", "ordinary.yaml")
INPUTS = inputs()
AUTHORIZATION = next(rule for rule in TOKEN if rule.judge is last_word)
ENTRY = next(rule for rule in environment(rb"(?:password|token)") if rule.judge is entry_value)


def _texts(name: str) -> list[str]:
    if name not in CORPORA:
        text = INPUTS[name]
        return [(text * (SIZE // len(text) + 1))[:SIZE]]
    return survivors(name) if name in CORPORA[3:] else [case.text for case in secrets(name)]


def _outputs(name: str) -> str:
    maskers = build_masker(["all"]), default_masker()
    masked = "\0".join(masker.mask(text) for masker in maskers for text in _texts(name))
    return hashlib.sha256(masked.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", [*CORPORA, *INPUTS])
def test_the_output_is_the_recorded_one(name: str) -> None:
    assert _outputs(name) == yaml.safe_load(RECORDED.read_text())[name]


def _spans(rule: Rule, text: bytes) -> list[tuple[int, int]]:
    found = []
    for (start, end), *_ in Regex(rule.regex).spans(text):
        part = rule.judge(text[start:end])
        found += [(start + part[0], start + part[1])] if part else []
    return found


def _grouped(rule: Rule, value: bytes, text: bytes) -> list[tuple[int, int]]:
    """Finds the same by a group of RE2 around the value."""
    judge = {last_word: credential, entry_value: password_line}[rule.judge]
    assert rule.regex.endswith(value)
    found = []
    for _, (start, end) in Regex(rule.regex.removesuffix(value) + b"(" + value + b")").spans(text):
        part = judge(text[start:end])
        found += [(start + part[0], start + part[1])] if part else []
    return found


_WORDS = ["authorization", "Bearer", "token", "basic", "name", "value", "DB_PASSWORD", "api_token", "parameter_value"]
_MARKS = [
    ": ",
    "=",
    "=>",
    ":",
    " ",
    "\t",
    "\n  ",
    "\\n",
    '"',
    "'",
    ",",
    "[",
    "[]string{",
    "#",
    "[MASKED_X]",
    "is",
    "v:=",
]


@given(st.lists(st.sampled_from([*_WORDS, *_MARKS, "hunter22", "aB3dE5gH"]), max_size=24).map("".join))
@example("authorization: Bearer\tis\tx authorization: token a=b")
@example("name: value_password\n  value: value=hunter22 value: x")
@examples(400)
def test_a_judge_finds_the_group_that_re2_would_find(text: str) -> None:
    encoded = text.encode()
    assert _spans(AUTHORIZATION, encoded) == _grouped(AUTHORIZATION, rb"""[^\s"'`\\,;\]\[]+""", encoded)
    assert _spans(ENTRY, encoded) == _grouped(ENTRY, rb"""[^\s"'`\\|>][^\n"'\\]*""", encoded)


@given(st.lists(st.sampled_from([*"nrt\\\n\r\t\v >|=!a", "\\n", "aB3d" * 40]), max_size=16).map("".join))
@examples(400)
def test_the_last_line_of_a_key_is_the_one_a_single_regex_finds(text: str) -> None:
    value = text.encode()
    found = LAST_LINE.search(value)
    assert _last_line(value) == ((found.start(), found[1]) if found else (len(value), b""))
    assert _BREAKS.sub(b"~", value) == BREAKS.sub(b"~", value)


def _host_by_host(value: bytes) -> bytes:
    """Returns the password in a URL, by a look at all that follows each `@`."""
    host = re.compile(rb"(?i)localhost|[a-z0-9.-]*\.[a-z0-9.-]*[a-z0-9](?::\d+)?|[a-z0-9-]+:\d+")
    for at in [index for index, byte in enumerate(value) if byte == ord("@")]:
        name, mark, rest = re.match(rb"([^/?#]*)([/?#]?)(.*)", value[at + 1 :], re.DOTALL).groups()  # type: ignore[union-attr]
        query = rest if mark == b"?" else rest.partition(b"?")[2] if mark == b"/" else b""
        if b"=" in query or (mark == b"/" and host.fullmatch(name)):
            return value[:at]
    return value


@given(st.lists(st.sampled_from([*"@/?=#a.-_A", "b.c", "localhost", ":80"]), max_size=14).map("".join))
@examples(400)
def test_a_password_in_a_url_ends_at_the_first_host(text: str) -> None:
    value = b"p" + text.encode()
    url = b"a://b:" + value + b"@h"
    assert web_password(url) == (6, 6 + len(_host_by_host(value)))


if __name__ == "__main__":
    print(yaml.safe_dump({name: _outputs(name) for name in [*CORPORA, *INPUTS]}))
