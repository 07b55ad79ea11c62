"""Tool names in Gemini's alphabet: a letter or `_` first, 64 characters, and back without loss."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.llm.google_native.names import spell
from tarsy.llm.tool_names import ToolNames

SERVERS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
TOOLS = st.text(min_size=1, max_size=128)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("kubernetes.pods_list", "kubernetes__pods_list"), ("1st.tool", "_1st__tool"), ("read", "read")],
)
def test_names_stay_readable(name: str, spelled: str) -> None:
    assert spell(name) == spelled


@given(st.lists(st.tuples(SERVERS, TOOLS), min_size=1, max_size=20, unique=True))
def test_every_name_of_a_server_and_its_tool_goes_there_and_back(pairs: list[tuple[str, str]]) -> None:
    names = [f"{server}.{tool}" for server, tool in pairs]
    back = ToolNames(names, spell)
    for name in names:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", spell(name))
        assert back.decode(spell(name)) == name


def test_the_longest_name_with_a_digit_in_front_fits() -> None:
    names = [f"9{'s' * 30}.{'t' * length}" for length in (30, 31, 32, 33)]
    assert len({spell(name) for name in names}) == 4 and max(len(spell(name)) for name in names) == 64
