"""Defines the errors of masking: an invalid configuration, and a text that could not be masked.

The author of an object reads the first one in the conditions of the object. The second one concerns the caller:
`tarsy.masking.failure_policy` decides which part of the text is passed on.
"""


class MaskingError(Exception):
    """Base of the errors of masking."""


class InvalidPattern(MaskingError):
    """A group, a pattern name or a custom pattern is invalid.

    Args:
        name: Name of the group or pattern.
        sentence: The error and its remedy.
    """

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name
        self.sentence = sentence


class MaskingFailed(MaskingError):
    """A text was not masked by all patterns: a custom pattern exceeded its time.

    Args:
        sentence: The reason, without any of the text.
        left: The text, masked by all patterns that finished; None if none did.
    """

    def __init__(self, sentence: str, left: str | None = None) -> None:
        super().__init__(sentence)
        self.left = left
