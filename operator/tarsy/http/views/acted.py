"""Models of the actions of a stage of kind Action."""

from typing import Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.record.approvals.acted import ModelWord, StageActed


class ExecutedCallView(View):
    """A call that was sent after people approved it."""

    call_id: str = Field(description="Id of the tool call, as citations have it.")
    tool: str
    state: str = Field(description="completed, failed (the tool reported an error), interrupted (outcome unknown).")


class ActedView(View):
    """Actions of a stage of kind Action: according to the record, with the model's own statement."""

    acted: bool = Field(description="Whether an approved call was sent, according to the record.")
    word: ModelWord = Field(description="Statement of the model on the last line of its answer. Unknown: not usable.")
    contradiction: str | None = Field(
        description="Difference between the model's statement and the record. Null: none."
    )
    sentence: str = Field(description="Actions taken, according to the record.")
    calls: tuple[ExecutedCallView, ...] = Field(description="The calls that were sent, in order, at most 50.")

    @classmethod
    def of(cls, found: StageActed | None) -> Self | None:
        """Converts what a stage did; None for stages of other kinds."""
        if found is None:
            return None
        return cls(
            acted=found.acted,
            word=found.word,
            contradiction=found.contradiction,
            sentence=found.sentence,
            calls=tuple(ExecutedCallView(call_id=one.ref, tool=one.tool, state=one.state) for one in found.calls),
        )
