"""A text that is masked while it comes, for those who read along: what is shown once is never taken back.

Decision: what is shown is always a beginning of what the whole text becomes when it is masked, and where that cannot be
known, nothing more is shown. Rules that stay within a line need that line: its words are shown as they end while no
rule may find anything in it, else when it is complete. Rules that span lines (PEM blocks, data of Kubernetes Secrets,
environments of containers) and patterns of users need the whole text: where one of them may find something, the text
stops, and readers wait for its end. Words that may be of a key whose beginning was cut off wait for what follows.
"""

from bisect import bisect_left

from tarsy.masking.errors import MaskingError
from tarsy.masking.masker import Masker, PatternReach

_LONGEST_LINE = 65_536  # characters that are held back at most
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_KEY_WORD = 16  # characters of base64 in a row that may be of a key (`rules._PEM_END`)
_DASHES = "-----"  # of the words that end a key
_ESCAPED = ("\\n", "\\r", "\\t")


class StreamingMasker:
    """One text.

    Args:
        masker: what takes secrets out of it; None where nothing does.
    """

    def __init__(self, masker: Masker | None) -> None:
        self._masker = masker
        self._held = ""  # from the beginning of a line on
        self._shown = 0  # characters of it that were shown already
        self.stopped = False

    def add(self, text: str) -> str:
        """What can be shown in addition, now that `text` has come; `stopped` says that no more of it ever will be."""
        if self._masker is None:
            return text
        if self.stopped:
            return ""
        self._held += text
        try:
            shown = self._more(self._masker)
        except MaskingError:
            shown, self.stopped = "", True
        if len(self._held) > _LONGEST_LINE:
            self.stopped = True
        if self.stopped:
            self._held = ""
        return shown

    def _more(self, masker: Masker) -> str:
        end = self._held.rfind("\n") + 1
        reach = masker.reach(self._held)
        if reach is PatternReach.BEYOND:
            end, self.stopped = self._before_it(masker), True
        shown = self._lines(masker, self._held.rfind("\n", 0, _settled(self._held, end)) + 1, reach)
        if self.stopped or "\n" in self._held:
            return shown
        if end and reach is PatternReach.LINE:
            reach = masker.reach(self._held)
        return shown + self._words() if reach is PatternReach.NONE else shown

    def _before_it(self, masker: Masker) -> int:
        """Where the first line begins in which a rule that spans lines may find something."""
        starts = [0]
        while (following := self._held.find("\n", starts[-1]) + 1) > 0:
            starts.append(following)
        ends = [*starts[1:], len(self._held)]
        return starts[bisect_left(ends, True, key=lambda end: masker.reach(self._held[:end]) is PatternReach.BEYOND)]

    def _lines(self, masker: Masker, end: int, reach: PatternReach) -> str:
        """Complete lines up to `end`, without secrets."""
        if not end:
            return ""
        lines, done = self._held[:end], self._shown
        self._held, self._shown = self._held[end:], 0
        masked = lines if reach is PatternReach.NONE else masker.mask(lines)
        if masked[:done] != lines[:done]:
            self.stopped = True
            return ""
        return masked[done:]

    def _words(self) -> str:
        """Complete words of a line in which no rule may find anything so far."""
        dashes = self._held.find(_DASHES)
        end = len(self._held) if dashes < 0 else dashes
        while end and not self._held[end - 1].isspace():
            end -= 1
        end = _settled(self._held, end)
        if end <= self._shown:
            return ""
        words = self._held[self._shown : end]
        self._shown = end
        return words


def _settled(text: str, end: int) -> int:
    """Where the words that may be lines of a key begin at the end of `text[:end]`; `end` where there are none."""
    while True:
        word = end
        while word and (text[word - 1].isspace() or text[word - 1] == "\\" or text[word - 2 : word] in _ESCAPED):
            word -= 1
        start = word
        while start and text[start - 1] in _BASE64:
            start -= 1
        if word - start < _KEY_WORD:
            return end
        end = start
