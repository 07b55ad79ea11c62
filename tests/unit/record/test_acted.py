"""What people are told of a stage of kind Action: the record wins over the word of the model."""

import pytest

from tarsy.record.approvals.acted import ExecutedCall, ModelWord, StageActed, read_word

YES, NO, UNKNOWN = ModelWord.YES, ModelWord.NO, ModelWord.UNKNOWN


def sent(state: str = "completed", number: int = 1) -> ExecutedCall:
    return ExecutedCall(f"call_{number}", "k8s.scale", state)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (StageActed(YES, (sent(),)), "An action was taken: k8s.scale (call_1)."),
        (StageActed(YES, (sent("failed"),)), "An action was taken: k8s.scale (call_1, the tool reported an error)."),
        (StageActed(NO, (sent("interrupted"),)), "An action may have been taken: k8s.scale (call_1, outcome unknown)."),
        (StageActed(UNKNOWN, ()), "No action was taken."),
        (StageActed(UNKNOWN, (), over=False), "No action was taken so far."),
        (StageActed(YES, (), replay=True), "No action was taken: this is a replay."),
    ],
)
def test_the_sentence_is_what_the_record_says(found: StageActed, told: str) -> None:
    assert found.sentence == told


@pytest.mark.parametrize(("count", "more"), [(4, ""), (5, " and 1 more"), (50, " and 46 more")])
def test_four_calls_are_named(count: int, more: str) -> None:
    found = StageActed(YES, tuple(sent(number=n) for n in range(count)))
    assert found.sentence.count("k8s.scale") == 4 and found.sentence.endswith(f"(call_3){more}.")


@pytest.mark.parametrize(
    ("found", "contradicts"),
    [
        (StageActed(YES, (sent(),)), False),
        (StageActed(NO, (sent(),)), True),
        (StageActed(NO, (sent("failed"),)), True),
        (StageActed(NO, (sent("interrupted"),)), False),
        (StageActed(YES, (sent("interrupted"),)), False),
        (StageActed(YES, ()), True),
        (StageActed(NO, ()), False),
        (StageActed(UNKNOWN, ()), False),
        (StageActed(UNKNOWN, (sent(),)), False),
        (StageActed(YES, (), over=False), False),
        (StageActed(YES, (), replay=True), False),
    ],
)
def test_a_contradiction_is_a_word_that_the_record_does_not_bear_out(found: StageActed, contradicts: bool) -> None:
    assert (found.contradiction is not None) is contradicts
    assert found.whole_sentence.startswith(found.sentence)


@pytest.mark.parametrize(
    ("text", "word", "left"),
    [
        ("Done.\nYES", YES, "Done."),
        ("Done.\n\n NO \n", NO, "Done."),
        ("YES", YES, ""),
        ("Done.\nyes", UNKNOWN, "Done.\nyes"),
        ("Done.\nYES.", UNKNOWN, "Done.\nYES."),
        ("Done. YES", UNKNOWN, "Done. YES"),
        ("YES\nDone.", UNKNOWN, "YES\nDone."),
        ("", UNKNOWN, ""),
    ],
)
def test_only_a_last_line_that_is_the_word_alone_counts(text: str, word: ModelWord, left: str) -> None:
    assert read_word(text) == (word, left)
