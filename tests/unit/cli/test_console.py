"""What commands print: as wide as a terminal, and never wrapped, cut or padded where it is piped."""

from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tarsy.cli.console import Hanging, Indented, new_console

LONG = "a-model-with-a-long-name " * 20


def piped(*blocks: object) -> str:
    stream = StringIO()
    console = new_console(stream)
    for block in blocks:
        console.print(block)
    return stream.getvalue()


def on_terminal(block: object, width: int) -> list[str]:
    console = Console(width=width, color_system=None, file=StringIO())
    console.print(block)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_what_is_piped_is_neither_wrapped_nor_cut_nor_padded() -> None:
    table = Table("Name", "Figure", box=None, pad_edge=False)
    table.add_row(LONG, "7")
    for line in piped(Text(LONG.strip()), Indented(Text(LONG.strip()), 9)).splitlines():
        assert line.endswith("name") and line.strip() == LONG.strip()
    assert LONG in piped(table).splitlines()[1]
    assert len(piped(table).splitlines()) == 2


def test_width_that_the_environment_names_does_not_count_where_it_is_piped(monkeypatch: object) -> None:
    monkeypatch.setenv("COLUMNS", "20")  # type: ignore[attr-defined]
    assert len(piped(Text(LONG)).splitlines()) == 1


def test_a_block_to_the_right_has_no_blanks_behind_its_lines() -> None:
    lines = on_terminal(Indented(Text("one two three\n\nfour"), 3), 10)
    assert lines == ["   one two", "   three", "", "   four"]


def test_a_hanging_text_goes_on_below_its_text() -> None:
    assert on_terminal(Hanging(Text("12:00:00 agent  tool  call {}"), 9), 26) == [
        "12:00:00 agent",
        "         tool  call {}",
    ]
    assert on_terminal(Hanging(Text("12:00:00 agent"), 9), 80) == ["12:00:00 agent"]
