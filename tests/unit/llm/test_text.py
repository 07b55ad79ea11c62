"""No half characters leave the room."""

from hypothesis import given
from hypothesis import strategies as st

from tarsy.llm.text import TextJoiner, encodable


@given(st.text(), st.integers(1, 4))
def test_text_cut_anywhere_even_inside_a_surrogate_pair_is_the_text_again(text: str, size: int) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)]
    joiner = TextJoiner()
    pieces = [joiner.add("".join(halves[i : i + size])) for i in range(0, len(halves), size)]
    assert "".join(pieces) + joiner.end() == text
    assert all(piece.encode() is not None for piece in pieces)


@given(st.text(alphabet=st.characters(categories=["Cs", "Lu", "So"])))
def test_any_text_can_be_encoded_afterwards(text: str) -> None:
    encodable(text).encode()


def test_a_half_that_stays_alone_becomes_a_replacement_character() -> None:
    joiner = TextJoiner()
    assert joiner.add("a\ud83d") + joiner.end() == "a\ufffd"
