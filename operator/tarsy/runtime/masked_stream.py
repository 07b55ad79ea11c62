"""Masks an answer as it streams to people: without secrets, and without the finding block.

A block that says it is a finding is taken out of the final answer (`tarsy.engine.findings.conclusion`), so those who
read along do not see it come either: the text stops before it, and its end comes with the event.
"""

import re

from tarsy.masking import StreamingMasker

_FENCE = "```"
_FINDING = re.compile(r"^[ \t]*(?:final answer:[ \t]*)?```[ \t]*finding\b", re.IGNORECASE | re.MULTILINE)
_OBJECT = "{"


class MaskedStream:
    """One text (`tarsy.stream.deltas.Words`).

    Args:
        unfolding: takes its secrets out.
    """

    def __init__(self, unfolding: StreamingMasker) -> None:
        self._unfolding = unfolding
        self._line = ""
        self._began = False
        self.stopped = False

    def add(self, text: str) -> str:
        """Returns the additional text that can be shown after `text` has arrived."""
        if self.stopped:
            return ""
        more = self._unfolding.add(text)
        self.stopped = self._unfolding.stopped
        if not self._began and more.strip():
            self._began = True
            if more.lstrip().startswith(_OBJECT):
                return self._end()
        known = len(self._line)
        self._line += more
        if _FENCE in self._line and (found := _FINDING.search(self._line)):
            more = self._line[known : max(known, found.start())]
            self.stopped = True
        self._line = self._line[self._line.rfind("\n") + 1 :]
        return more

    def _end(self) -> str:
        self.stopped = True
        return ""
