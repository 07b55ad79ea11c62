"""Masks a text while it streams; shown text is never retracted.

Decision: the shown text is always a prefix of the masked whole text; if that cannot be guaranteed, nothing more is
shown. Rules within a line need the line: its words are shown one by one while no rule may match, else when the line is
complete. Rules across lines (PEM blocks, data of Kubernetes Secrets, environments of containers) and custom patterns
need the whole text: if one of them may match, the stream stops, and readers wait for the closed event. Words that may
belong to a key with a truncated beginning wait for the text after them.
"""

from bisect import bisect_left

from tarsy.masking.errors import MaskingError
from tarsy.masking.masker import Masker, PatternReach

_LONGEST_LINE = 65_536  # maximum characters that are held back
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_KEY_WORD = 16  # consecutive base64 characters that may belong to a key (`rules._PEM_END`)
_DASHES = "-----"  # start of the end line of a key
_ESCAPED = ("\\n", "\\r", "\\t")


class StreamingMasker:
    """Masks one streaming text.

    Args:
        masker: the masker; None: the text is not masked.
    """

    def __init__(self, masker: Masker | None) -> None:
        self._masker = masker
        self._held = ""  # from the beginning of a line on
        self._shown = 0  # characters of it that were shown already
        self.stopped = False

    def add(self, text: str) -> str:
        """Adds text; returns the additional text to show. After `stopped` is set, nothing more is shown."""
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
        """Returns the start of the first line in which a rule across lines may match."""
        starts = [0]
        while (following := self._held.find("\n", starts[-1]) + 1) > 0:
            starts.append(following)
        ends = [*starts[1:], len(self._held)]
        return starts[bisect_left(ends, True, key=lambda end: masker.reach(self._held[:end]) is PatternReach.BEYOND)]

    def _lines(self, masker: Masker, end: int, reach: PatternReach) -> str:
        """Returns the masked complete lines up to `end`."""
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
        """Returns the complete words of a line in which no rule may match so far."""
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
    """Returns the start of words at the end of `text[:end]` that may be lines of a key; `end` if there are none."""
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
