"""What can go wrong in this room: a configuration that cannot be used, and a text that could not be masked.

They are two classes because they concern two people: the first is the author's of an object, who reads it in the
object's conditions; the second is the caller's, for whom `tarsy.masking.failure_policy` decides what of the text goes
on.
"""


class MaskingError(Exception):
    """Something about masking that the caller has to decide on."""


class InvalidPattern(MaskingError):
    """A group, a pattern's name or a custom pattern that cannot be used; the sentence names it and the remedy.

    Args:
        name: Which one.
        sentence: What is wrong and what to do.
    """

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name
        self.sentence = sentence


class MaskingFailed(MaskingError):
    """A text that was not masked by all patterns: a custom one used more time than a linear pattern can need.

    Args:
        sentence: Why; it holds nothing of the text.
        left: The text as all patterns that got through left it; None where none did.
    """

    def __init__(self, sentence: str, left: str | None = None) -> None:
        super().__init__(sentence)
        self.left = left
