"""Fences around text that is not ours.

Alert data, runbooks, tool results and model output are data, never instructions. A fence is a pair of comment markers;
the text inside has every comment opener broken, so nothing in it can close its fence or open another.
"""


def fence(name: str, text: str) -> str:
    """Wraps `text` between `<!-- NAME_START -->` and `<!-- NAME_END -->`, its own markers made harmless."""
    body = text.replace("<!--", "<! --")
    return f"<!-- {name}_START -->\n{body}\n<!-- {name}_END -->"
