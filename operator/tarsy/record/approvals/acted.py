"""Defines the actions of a stage of kind Action: as its model states them, and as recorded.

Decision: the record wins. A stage acted if a call was sent that people had approved, whatever its model says; one whose
outcome is unknown counts, because it may have arrived. The model's word is read strictly from its last line and kept
beside the record; where the two differ, people are told.
"""

from dataclasses import dataclass
from enum import StrEnum

ACTED = "Acted"
"""Reason of the notice that tells what a stage of kind Action did."""

CALLS_SHOWN = 4
"""Calls that a sentence names."""


class ModelWord(StrEnum):
    """Whether an action was taken, in the word of the model."""

    YES = "Yes"
    NO = "No"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call that was sent after people approved it: its reference (`call_ref`), tool and `InteractionState`."""

    ref: str
    tool: str
    state: str


@dataclass(frozen=True, slots=True)
class StageActed:
    """Holds the actions of a stage of kind Action.

    `calls` come from the record. `word` is the model's; Unknown where it gave none. `replay`: nothing is ever sent.
    `over`: the stage has ended, so that its model will say nothing more.
    """

    word: ModelWord = ModelWord.UNKNOWN
    calls: tuple[ExecutedCall, ...] = ()
    replay: bool = False
    over: bool = True

    @property
    def acted(self) -> bool:
        """Whether an action was taken, or may have been, by the record."""
        return bool(self.calls)

    @property
    def certain(self) -> bool:
        """Whether a call was answered by its tool. The outcome of others is unknown: perhaps they never arrived."""
        return any(call.state not in _UNCERTAIN for call in self.calls)

    @property
    def contradiction(self) -> str | None:
        """Tells that the model's word differs from the record; None: it does not, or there is none."""
        if self.replay or not self.over:
            return None
        if self.word is ModelWord.NO and self.certain:
            return "The model says that it took no action, but the record has an approved call that was sent."
        if self.word is ModelWord.YES and not self.calls:
            return "The model says that it took an action, but the record has no approved call that was sent."
        return None

    @property
    def sentence(self) -> str:
        """Tells people what was done, by the record."""
        if self.replay:
            return "No action was taken: this is a replay."
        if not self.calls:
            return "No action was taken." if self.over else "No action was taken so far."
        told = [f"{call.tool} ({call.ref}{_ENDS.get(call.state, '')})" for call in self.calls[:CALLS_SHOWN]]
        more = len(self.calls) - len(told)
        was = "was taken" if self.certain else "may have been taken"
        return f"An action {was}: {', '.join(told)}{f' and {more} more' if more > 0 else ''}."

    @property
    def whole_sentence(self) -> str:
        """The sentence, with the contradiction if there is one."""
        return self.sentence if self.contradiction is None else f"{self.sentence} {self.contradiction}"


_UNCERTAIN = ("started", "interrupted")
_ENDS: dict[str, str] = {
    "started": ", outcome not known yet",
    "interrupted": ", outcome unknown",
    "failed": ", the tool reported an error",
}


def read_word(text: str) -> tuple[ModelWord, str]:
    """Returns the model's word on the last line of its answer, and the answer without that line.

    Only a line that is exactly YES or NO counts. Any other text is left as it is, and the word is unknown.

    Args:
        text: the answer.
    """
    body = text.rstrip()
    before, _, last = body.rpartition("\n")
    word = _WORDS.get(last.strip())
    return (ModelWord.UNKNOWN, text) if word is None else (word, before.rstrip())


_WORDS = {"YES": ModelWord.YES, "NO": ModelWord.NO}
