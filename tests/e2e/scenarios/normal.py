"""Replaces what differs from run to run by placeholders: ids, names made of ids, hashes, times, durations, the date.

Decision: a placeholder says which one it is wherever a reader must be able to follow it (`<call 2>` in a citation is
the second tool call of the run), so a golden in which two ids are swapped is another golden.
"""

import re
from collections.abc import Mapping
from typing import Any

from e2e.scenarios.record import Run
from tarsy.engine.prompts.calendar import calendar

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_DAY = re.compile(r"\bOn \d{4}-\d\d-\d\d,")
"""Begins a line about an earlier investigation."""
_PERIOD = re.compile(r"(The next period begins at )\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_WAITED = re.compile(r"(it has waited for |reason: Woken\n +seconds: )\d+")
_VARIES = {
    "duration": "<duration>",
    "planHash": "<plan hash>",
    "recordRevision": "<revision>",
    "waitedSeconds": "<seconds>",
}


def constant(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status without what no placeholder can be recognised of."""
    return {key: _VARIES.get(key, value) for key, value in status.items()}


class Normal:
    """Makes the texts of one run the same as those of every other run of its scenario."""

    def __init__(self, run: Run) -> None:
        names = _names(run)
        if run.about is not None:
            names |= _told_of(run.about, "the investigation") | names
        for number, answer in enumerate(run.earlier, 1):
            names |= _told_of(answer, f"question {number}") | names
        self._names = names
        self._pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))

    def __call__(self, text: str) -> str:
        """The text with placeholders."""
        named = self._pattern.sub(lambda found: self._names[found[0]], _WAITED.sub(r"\g<1><seconds>", text))
        return _PERIOD.sub(r"\g<1><time>", _DAY.sub("On <day>,", _TIME.sub("<time>", named)))


def _told_of(run: Run, what: str) -> dict[str, str]:
    return {name: f"{told[:-1]} of {what}>" for name, told in _names(run).items()}


def _names(run: Run) -> dict[str, str]:
    own, *others = (obj["metadata"] for obj in run.objects)
    names = {own["uid"]: "<run>", own["namespace"]: "<namespace>"}
    if run.record.seal is not None:
        names[run.record.seal] = "<seal>"
    if others:  # the name of an object that somebody made himself is the same in every run
        names[own["name"]] = "<investigation>"
    names |= {meta["uid"]: "<alert>" for meta in others}
    number = 0
    for execution in run.executions:
        names[str(execution.row["id"])] = f"<execution {execution.title}>"
        names[calendar(execution.row["started_at"])] = "<calendar>"
        for call in execution.tool_calls:
            number += 1
            names[execution.ref(call)] = f"<call {number}>"
            names[str(call["id"])] = f"<tool call {number}>"
            names[call["idempotency_key"]] = f"<idempotency key {number}>"
    return names
