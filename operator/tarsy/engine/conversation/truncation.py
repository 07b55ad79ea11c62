"""Truncates texts: for people who read a timeline, and for models.

A text is measured in bytes, as a token is estimated as four of them, and what is left out of it is its middle:
beginnings say what it is, ends how it ended.
"""

from tarsy.engine.conversation.compaction import cut_text, size

BYTES_PER_TOKEN = 4
SHOWN_BYTES = 8_000 * BYTES_PER_TOKEN
"""Maximum characters of a tool's result in a timeline event; the call's own row keeps all of it."""
_NOTE = 200


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return -(-size(text) // BYTES_PER_TOKEN)


def truncate_middle(text: str, limit: int, where: str) -> str:
    """The text, without its middle where it takes more than `limit` bytes; lines stay whole where they can.

    Args:
        text: any.
        limit: bytes; a few more when the text is hardly longer.
        where: a clause that says where the rest is.
    """
    whole = size(text)
    if whole <= limit:
        return text
    keep = max(0, limit - _NOTE) * len(text) // whole
    return cut_text(text, keep - keep // 3, keep // 3, where)


def truncate_for_timeline(result: str) -> str:
    """A tool's result as a timeline event shows it."""
    return truncate_middle(result, SHOWN_BYTES, "the whole is on record as the result of this call")
