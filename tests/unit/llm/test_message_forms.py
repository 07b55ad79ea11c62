"""What was made of the beginning of a conversation holds for its next request, and nothing else does."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.llm.message_forms import MessageForms
from tarsy.record.messages import Message, Role


def message(text: str, role: Role = Role.USER) -> Message:
    return Message(role, text)


class Maker:
    """Makes capitals of messages, and counts."""

    def __init__(self) -> None:
        self.forms = MessageForms()
        self.made: list[str] = []

    def of(self, messages: Sequence[Message], variants: Sequence[object] = (), maker: str = "m") -> list[str]:
        def make(place: int) -> str:
            self.made.append(messages[place].content)
            return messages[place].content.upper()

        return list(self.forms.each(maker, messages, make, variants))


A, B, C = message("a"), message("b"), message("c")


def test_only_new_messages_are_made() -> None:
    maker = Maker()

    assert maker.of([A, B]) == ["A", "B"]
    assert maker.of([A, B, C]) == ["A", "B", "C"]
    assert maker.of([A, B, C]) == ["A", "B", "C"]

    assert maker.made == ["a", "b", "c"]


def test_all_after_the_first_change_are_made_anew() -> None:
    maker = Maker()
    maker.of([A, B, C])

    assert maker.of([A, message("x"), C]) == ["A", "X", "C"]

    assert maker.made == ["a", "b", "c", "x", "c"]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_shorter_conversation_has_fewer(left: int) -> None:
    maker = Maker()
    maker.of([A, B, C])

    assert maker.of([A, B, C][:left]) == ["A", "B", "C"][:left]
    assert maker.of([A, B, C]) == ["A", "B", "C"]


def test_another_variant_is_made_anew() -> None:
    maker, one, other = Maker(), object(), object()
    maker.of([A, B, C])

    assert maker.of([A, B, C], [None, one, None]) == ["A", "B", "C"]
    assert maker.of([A, B, C], [None, other, None]) == ["A", "B", "C"]
    assert maker.of([A, B, C], [None, other, None]) == ["A", "B", "C"]

    assert maker.made == [*"abc", *"bc", *"bc"]


def test_another_maker_begins_anew() -> None:
    maker = Maker()
    maker.of([A, B])

    assert maker.of([A, B], maker="other") == ["A", "B"]

    assert maker.made == [*"abab"]


def test_a_call_and_its_results_hold_together() -> None:
    asks, one, other = (
        message(text, role) for text, role in zip("cde", [Role.ASSISTANT, *[Role.TOOL] * 2], strict=True)
    )
    maker = Maker()
    maker.of([A, asks, one])

    maker.of([A, asks, one, other])
    maker.of([A, asks, one])

    assert maker.made == [*"acd", *"cde", *"cd"]


def test_a_form_that_cannot_be_made_is_made_when_it_can() -> None:
    forms, broken = MessageForms(), True

    def make(place: int) -> int:
        if place == 1 and broken:
            raise ValueError
        return place

    with pytest.raises(ValueError):
        forms.each("m", [A, B], make)
    broken = False

    assert forms.each("m", [A, B, C], make) == [0, 1, 2]


def test_a_part_is_made_once_for_the_same_objects() -> None:
    forms, made = MessageForms(), []

    def part(of: Sequence[object]) -> int:
        return forms.part("tools", of, lambda: made.append(of) or len(made))  # type: ignore[func-returns-value]

    assert [part([A, B]), part((A, B)), part([A]), part([A, C]), part([A, C])] == [1, 1, 2, 3, 3]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=6), max_size=8))
def test_what_is_kept_is_what_is_made_anew(requests: list[list[tuple[int, bool]]]) -> None:
    pool = [message("a"), message("b", Role.ASSISTANT), message("c", Role.TOOL), message("d", Role.TOOL)]
    forms = MessageForms()

    for request in requests:
        messages, variants = [pool[i] for i, _ in request], [flag for _, flag in request]
        made = forms.each("m", messages, lambda i: (messages[i].content, variants[i]), variants)  # noqa: B023

        assert made == [(m.content, flag) for m, flag in zip(messages, variants, strict=True)]
