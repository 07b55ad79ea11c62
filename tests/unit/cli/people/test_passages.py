"""Where a quote stands in a result."""

from tarsy.cli.runs.passages import AROUND, Passage, passage


def test_a_quote_is_found_however_it_is_wrapped() -> None:
    assert passage("one\ntwo  three\nfour", "two three four") == Passage("one\n", "two  three\nfour", "")


def test_only_some_lines_around_it_are_kept() -> None:
    text = "\n".join(f"line {number}" for number in range(20))
    assert passage(text, "line 10") == Passage("…\nline 8\nline 9\n", "line 10", "\nline 11\nline 12\n…")


def test_a_long_line_is_cut_on_both_sides() -> None:
    found = passage("a" * 5000 + " needle " + "b" * 5000, "needle")
    assert found is not None
    assert (found.before[0], found.after[-1]) == ("…", "…")
    assert max(len(found.before), len(found.after)) == AROUND + 1


def test_what_is_not_there_is_not_shown_as_something_alike() -> None:
    assert passage("the password is [MASKED_PASSWORD]", "the password is hunter2") is None
    assert passage("anything", "  ") is None


def test_a_broken_comment_opener_is_found_as_the_model_saw_it() -> None:
    found = passage("see <!-- here", "<! -- here")
    assert found is not None and found.quoted == "<! -- here"


def test_no_control_character_is_shown() -> None:
    found = passage("\x1b[2Jgone \u202ethere", "gone there")
    assert found == Passage("[2J", "gone there", "")
