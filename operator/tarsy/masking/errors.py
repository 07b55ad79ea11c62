"""What can go wrong in this room: a configuration that cannot be used, and a text that could not be masked.

They are two classes because they concern two people: the first is the author's of an object, who reads it in the
object's conditions; the second is the caller's, who decides whether the text goes on (alerts) or not (tool results).
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
    """A text that could not be masked: treat it as secret (tool results) or as it is (alerts).

    Raised in two cases only: a custom pattern used more time on one text than a linear pattern can need, or RE2 ran
    out of memory in the first look. The sentence holds nothing of the text.
    """
