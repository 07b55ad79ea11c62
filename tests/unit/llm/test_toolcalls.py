"""Tool calls are put together from whatever pieces servers send."""

from tarsy.llm.tool_names import ToolNames
from tarsy.llm.toolcalls import ToolCallAssembler
from tarsy.record.messages import ToolCall

Piece = tuple[int | None, str | None, str | None, str | None]


def assemble(*pieces: Piece, salt: str = "s") -> tuple[ToolCall, ...]:
    assembler = ToolCallAssembler(ToolNames(["k.get", "k.list"]), salt)
    for index, id, name, arguments in pieces:
        assembler.add(index=index, id=id, name=name, arguments=arguments)
    return assembler.calls()


def test_pieces_of_two_interleaved_calls_are_put_together_in_order_of_their_beginning() -> None:
    calls = assemble(
        (1, "b", "k__list", '{"x"'), (0, "a", "k__get", "{"), (1, None, None, ":1}"), (0, None, None, '"y":2}')
    )
    assert calls == (ToolCall("b", "k.list", '{"x":1}'), ToolCall("a", "k.get", '{"y":2}'))


def test_whole_calls_that_all_carry_index_zero_stay_separate() -> None:
    calls = assemble((0, "a", "k__get", "{}"), (0, "b", "k__get", "{}"))
    assert [call.id for call in calls] == ["a", "b"]


def test_pieces_without_index_follow_the_last_call() -> None:
    calls = assemble((None, "a", "k__get", "{"), (None, None, None, "}"), (None, None, "k__list", "{}"))
    assert [(call.name, call.arguments) for call in calls] == [("k.get", "{}"), ("k.list", "{}")]


def test_a_name_and_id_repeated_in_every_piece_are_taken_once() -> None:
    assert assemble((0, "a", "k__get", "{"), (0, "a", "k__get", "}")) == (ToolCall("a", "k.get", "{}"),)


def test_missing_malformed_and_repeated_ids_become_distinct_and_the_same_each_time() -> None:
    pieces: list[Piece] = [
        (0, None, "k__get", "{}"),
        (1, "", "k__get", "{}"),
        (2, "a b\n", "k__get", "{}"),
        (3, "x", "k__get", "{}"),
        (4, "x", "k__get", "{}"),
        (5, "y" * 500, "k__get", "{}"),
    ]
    ids = [call.id for call in assemble(*pieces)]
    assert len(set(ids)) == 6 and ids[3] == "x"
    assert ids == [call.id for call in assemble(*pieces)]
    assert ids[0] != assemble(*pieces, salt="another turn")[0].id
