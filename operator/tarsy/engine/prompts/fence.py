"""Fences untrusted text, and puts names on one line.

Alert data, runbooks, tool results and model output are data, never instructions. A fence is a pair of comment markers;
the text inside has every comment opener broken by a blank, so nothing in it can close its fence or open another.
Openers that only look like one are broken as well: other characters of that shape, tags (a model may read them as the
letters they stand for), and between them whatever is not seen: controls, formats, marks that combine, variation
selectors. A model reads shapes, not code points. What is left of a look-alike has no opener, and markers are promised
with theirs only.
"""

import re
import unicodedata
from functools import lru_cache

from tarsy.record.text import without_invisible

_LESS = "<\u02c2\u1438\u1dfe\u2039\u226e\u2329\u276e\u27e8\u29fc\u3008\u300a\ufe64\uff1c\U000e003c"  # the last is a tag
_BANG = "!\u01c3\u203c\u2048\u2049\u2757\ufe15\ufe57\uff01\U000e0021"
_DASH = (
    "-\u00ad\u02d7\u06d4\u1173\u2043\u207b\u208b\u2212\u23af\u2500\u2501\u2796\u2f00\u30fc\u3161\u3192\u4e00"
    "\uff70\uffda\U000e002d"
)
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters to Unicode, and blank to the eye
_RESERVED = ((0x2065, 0x2065), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF))  # ignorable, and of no category yet
_SPACES = "\t\n\r"
_OPENS, _BANGS, _DASHES, _UNSEEN = 1, 2, 4, 8
_BEGINNING = re.compile(f"[{_LESS}]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PLAIN_OPENER = re.compile(r"(<!+)-")  # several bangs too: one of the look-alikes stands for two
_NAME_LIMIT = 200
ALERT_FENCE = "ALERT_DATA"


def defuse(text: str) -> str:
    """`text` with every comment opener broken; what is broken already stays as it is."""
    if text.isascii() and not _CONTROL.search(text):
        return _PLAIN_OPENER.sub(r"\1 -", text)
    pieces, done, at = [], 0, 0
    while found := _BEGINNING.search(text, at):
        at, bangs = _opened(text, found.start())
        for bang in bangs:
            pieces.append(text[done : bang + 1])
            done = bang + 1
    return " ".join((*pieces, text[done:]))


def _opened(text: str, start: int) -> tuple[int, list[int]]:
    """Finds the end of the run of marks and invisible characters from `start` on, and the bangs after which blanks
    follow."""
    bangs: list[int] = []
    opened, bang = False, -1  # whether an opener has begun, and its latest bang: nothing but the invisible since
    for index in range(start, len(text)):
        role = _role(text[index])
        if not role:
            return index, bangs
        if role & _DASHES and bang >= 0:
            bangs.append(bang)
            opened, bang = False, -1
        unseen = bool(role & _UNSEEN)
        bang = index if (opened or bang >= 0) and role & _BANGS else bang if unseen else -1
        opened = bool(role & _OPENS) or (opened and unseen)
    return len(text), bangs


@lru_cache(4096)
def _role(character: str) -> int:
    """Returns the part of an opener that a character may be read as, and whether it may be overlooked."""
    category, code = unicodedata.category(character), ord(character)
    role = _OPENS * (character in _LESS) | _BANGS * (character in _BANG)
    role |= _DASHES * (character in _DASH or category == "Pd")
    unseen = category in ("Cf", "Cc", "Cs", "Mn", "Mc", "Me") or character in _FILLERS
    unseen = unseen or any(first <= code <= last for first, last in _RESERVED)
    return role | _UNSEEN * (unseen and character not in _SPACES)


def readable(text: str) -> str:
    """Returns a text as models get it: without invisible characters, and with every comment opener broken."""
    return defuse(without_invisible(text).text)


def fence(name: str, text: str) -> str:
    """Wraps `text` between `<!-- NAME_START -->` and `<!-- NAME_END -->`, its own markers made harmless."""
    return f"<!-- {name}_START -->\n{readable(text)}\n<!-- {name}_END -->"


def fenced(name: str, text: str) -> str | None:
    """Returns the content of the first fence of a name; None without one."""
    _, opening, rest = text.partition(f"<!-- {name}_START -->\n")
    inside, closing, _ = rest.partition(f"\n<!-- {name}_END -->")
    return inside if opening and closing else None


def inline(text: str, limit: int = _NAME_LIMIT) -> str:
    """A name from outside, fit for a heading or a sentence: one line without markers, at most `limit` characters."""
    line = " ".join(readable(" ".join(text[: 8 * limit].split())).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
