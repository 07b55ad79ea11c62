"""What programs and terminals get."""

import json
from io import StringIO

import pytest
import yaml
from rich.console import Console
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import write_output
from tarsy.client.plain_text import one_line, plain

HOSTILE = "a\u202eb\x9bc"


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_every_character_and_a_terminal_obeys_none(capsys, output, read) -> None:  # type: ignore[no-untyped-def]
    write_output({"text": HOSTILE, "name": "für"}, output)
    written = capsys.readouterr().out
    assert read(written) == {"text": HOSTILE, "name": "für"}
    assert "\u202e" not in written and "\x9b" not in written


def test_one_of_many_is_a_line_or_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    write_output({"a": {"b": 1}}, "json", one_of_many=True)
    write_output({"a": 2}, "yaml", one_of_many=True)
    assert capsys.readouterr().out == '{"a": {"b": 1}}\n---\na: 2\n'


def test_people_see_no_control_character() -> None:
    assert plain("a\x1b]0;x\x07\nb\u202e\u2067c") == "a]0;x\nbc"
    assert one_line("a\n b\tc", 4) == "a b…"


def test_indented_text_wraps_within_the_width_and_leaves_no_blanks_behind() -> None:
    out = StringIO()
    Console(file=out, width=10).print(Indented(Text("one two three"), 3))
    assert out.getvalue() == "   one two\n   three\n"
