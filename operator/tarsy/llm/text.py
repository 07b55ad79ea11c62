"""Encodes text so that it can be sent and stored: no lone surrogates.

JSON lets a server write a character beyond the basic plane as two escapes, and a stream may put them into different
chunks. Python keeps such halves (surrogates) apart until someone encodes the text, in Postgres or on the wire.
"""


def encodable(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class TextJoiner:
    """Hands on the text of a stream, keeping back a first half until the second is there."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """The text that is complete now; may be empty."""
        text, self._half = self._half + piece, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return encodable(text)

    def end(self) -> str:
        """Returns the rest: a replacement character for a lone surrogate."""
        text, self._half = self._half, ""
        return encodable(text)
