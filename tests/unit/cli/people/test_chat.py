"""An answer, printed as it is written."""

from io import StringIO

from rich.console import Console

from tarsy.cli.requests.chat import AnswerTeller
from tarsy.record.run import State
from tarsy.record.timeline import EventStatus, EventType
from unit.cli.people.doors import event, head

OPEN = EventStatus.STREAMING


class Screen:
    """A teller, what it prints, and what goes beside."""

    def __init__(self, *, silent: bool = False) -> None:
        self.out, self.aside = StringIO(), StringIO()
        consoles = [Console(file=file, width=40, markup=False, highlight=False) for file in (self.out, self.aside)]
        self.teller = AnswerTeller(*consoles, wide=False, silent=silent)


def test_words_are_printed_as_they_come_and_not_again_when_their_event_is_closed() -> None:
    screen = Screen()
    with screen.teller as teller:
        teller.begun(event(1, "", OPEN))
        teller.words(event(1).id, 0, "It is ")
        teller.words(event(1).id, 3, "is still")  # told twice in part
        assert screen.out.getvalue() == "It is still"
        teller.closed(event(1, "It is still full."), truncated=False)
        teller.closed(event(2, "It is still full.", kind=EventType.FINAL_ANALYSIS), truncated=False)
        teller.end(head(State.COMPLETED))
    assert screen.out.getvalue() == "It is still full.\n"


def test_a_gap_is_filled_by_the_events_end_and_a_changed_text_is_printed_anew() -> None:
    screen = Screen()
    with screen.teller as teller:
        teller.begun(event(1, "", OPEN))
        teller.words(event(1).id, 0, "The key ")
        teller.words(event(1).id, 99, "lost")
        teller.closed(event(1, "The key is there."), truncated=False)
        teller.begun(event(2, "", OPEN))
        teller.words(event(2).id, 0, "It is hunter2")
        teller.closed(event(2, "It is [MASKED]."), truncated=False)
    assert screen.out.getvalue() == "The key is there.\nIt is hunter2\nIt is [MASKED].\n"


def test_tools_go_beside_and_no_escape_reaches_the_terminal() -> None:
    screen = Screen()
    with screen.teller as teller:
        teller.closed(event(1, "x\x1b[2Jy", kind=EventType.LLM_TOOL_CALL, name="k.logs"), truncated=False)
        teller.closed(event(2, "done\x1b[31m"), truncated=False)
    assert screen.out.getvalue() == "done[31m\n"
    assert "k.logs" in screen.aside.getvalue() and "\x1b[2J" not in screen.aside.getvalue()


def test_for_programs_nothing_is_printed_on_the_way() -> None:
    screen = Screen(silent=True)
    with screen.teller as teller:
        teller.begun(event(1, "", OPEN))
        teller.words(event(1).id, 0, "It is ")
        teller.closed(event(1, "It is."), truncated=False)
    assert (screen.out.getvalue(), screen.aside.getvalue()) == ("", "")
