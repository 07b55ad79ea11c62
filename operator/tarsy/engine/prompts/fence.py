"""Fences around text that is not ours, and names on one line.

Alert data, runbooks, tool results and model output are data, never instructions. A fence is a pair of comment markers;
the text inside has every comment opener broken by a blank, so nothing in it can close its fence or open another.
Openers that only look like one are broken as well: other characters of that shape, and invisible ones between. A model
reads shapes, not code points. What is left of a look-alike has no opener, and markers are promised with theirs only.
"""

import re

_LESS = "<\u02c2\u1438\u1dfe\u2039\u2329\u276e\u27e8\u29fc\u3008\u300a\ufe64\uff1c"
_BANG = "!\u01c3\u2757\ufe15\ufe57\uff01"
_DASH = (
    "-\u00ad\u02d7\u05be\u06d4\u1806\u2010-\u2015\u2043\u207b\u2212\u23af\u2500\u2501\u30fc\u4e00"
    "\ufe31\ufe32\ufe58\ufe63\uff0d"
)
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0"
)
_OPENER = re.compile(f"([{_LESS}][{_UNSEEN}]*+[{_BANG}])(?=[{_UNSEEN}]*+[{_DASH}])")
_NAME_LIMIT = 200
ALERT_FENCE = "ALERT_DATA"


def defuse(text: str) -> str:
    """`text` with every comment opener broken; what is broken already stays as it is."""
    return text.replace("<!-", "<! -") if text.isascii() else _OPENER.sub(r"\1 ", text)


def fence(name: str, text: str) -> str:
    """Wraps `text` between `<!-- NAME_START -->` and `<!-- NAME_END -->`, its own markers made harmless."""
    return f"<!-- {name}_START -->\n{defuse(text)}\n<!-- {name}_END -->"


def fenced(name: str, text: str) -> str | None:
    """What stands in the first fence of a name; None where there is none."""
    _, opening, rest = text.partition(f"<!-- {name}_START -->\n")
    inside, closing, _ = rest.partition(f"\n<!-- {name}_END -->")
    return inside if opening and closing else None


def inline(text: str, limit: int = _NAME_LIMIT) -> str:
    """A name from outside, fit for a heading or a sentence: one line without markers, at most `limit` characters."""
    line = " ".join(defuse(" ".join(text[: 8 * limit].split())).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
