"""Fills in the templates of `notify[].request`; pure functions.

Decision: a template is filled in after it is parsed. So a value is one part of the path or of the query of a URL, or
part of one text of the JSON, and can neither lead the request elsewhere nor add a field to it.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from tarsy.record.json_pointer import find_pointer
from tarsy.record.run import InvestigationRecord
from tarsy.resources.v1alpha1.notify import REQUEST_PLACEHOLDER, RequestTarget

MOST_OF_A_VALUE = 2_900
"""Characters of one value in a body."""

MOST_IN_A_URL = 512
"""Characters of one value in a URL."""

_PLACEHOLDER = re.compile(REQUEST_PLACEHOLDER)
_ALERT = "alert:"


class CannotFillIn(Exception):
    """A template cannot be filled in; the sentence says why."""


def pointers(target: RequestTarget) -> tuple[str, ...]:
    """Returns the JSON pointers into the text of the alert that a target names, each once."""
    named = [one[1] for one in _PLACEHOLDER.finditer(target.url + target.body)]
    return tuple(dict.fromkeys(name.removeprefix(_ALERT) for name in named if name.startswith(_ALERT)))


def alert_values(text: str | None, wanted: tuple[str, ...]) -> dict[str, str]:
    """Finds values in the text of an alert, if it is JSON.

    Args:
        text: as it is in the object, with secrets masked; None: it is not there.
        wanted: JSON pointers (RFC 6901).
    """
    if not wanted:
        return {}  # an alert may be large
    try:
        document = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    found = {pointer: _at(document, pointer) for pointer in wanted}
    return {pointer: value for pointer, value in found.items() if value is not None}


def run_values(record: InvestigationRecord, word: str, summary: str, command: str, url: str | None) -> dict[str, str]:
    """Returns the values of a run by the names of placeholders.

    Args:
        record: of the run.
        word: what is told, such as Started or Succeeded.
        summary: its result, or why there is none.
        command: that prints the timeline.
        url: of the run in the web UI; None: not known.
    """
    finding = record.outcome.finding if record.outcome else None
    values = {
        "phase": word,
        "namespace": record.namespace,
        "name": record.name,
        "alertType": record.alert_type,
        "chain": record.chain,
        "summary": summary,
        "confidence": finding.confidence.value if finding else "",
        "command": command,
        "url": url or "",
    }
    return {name: value[:MOST_OF_A_VALUE] for name, value in values.items()}


def filled_url(template: str, values: Mapping[str, str]) -> str:
    """Returns the URL of a request; each value is percent-encoded as one part of it.

    Raises:
        CannotFillIn: a value is missing, or would be another part of the path.
    """

    def encoded(name: str) -> str:
        value = _value(name, values)
        if value in ("", ".", "..") or len(value) > MOST_IN_A_URL:
            raise CannotFillIn(f"{{{{{name}}}}} has no value that a URL can contain")
        return quote(value, safe="")

    return _filled(template, encoded)


def filled_body(template: str, values: Mapping[str, str]) -> bytes:
    """Returns the JSON of a request.

    Raises:
        CannotFillIn: a value is missing, or the template is not JSON.
    """
    try:
        document = json.loads(template)
    except (ValueError, RecursionError):
        raise CannotFillIn("its body is not JSON; write placeholders within texts") from None
    return json.dumps(_within(document, values), ensure_ascii=False).encode()


def template_fault(template: str) -> str | None:
    """Returns why a body cannot be used; None: it can."""
    try:
        json.loads(template)
    except (ValueError, RecursionError):
        return "is not JSON; write JSON, with placeholders such as {{summary}} within its texts"
    return None


def _within(document: Any, values: Mapping[str, str]) -> Any:
    match document:
        case str():
            return _filled(document, lambda name: _value(name, values))
        case dict():
            return {key: _within(value, values) for key, value in document.items()}
        case list():
            return [_within(value, values) for value in document]
        case _:
            return document


def _filled(template: str, value: Callable[[str], str]) -> str:
    return _PLACEHOLDER.sub(lambda found: value(found[1]), template)


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        raise CannotFillIn(f"the alert has no text or number at {name.removeprefix(_ALERT)}")
    return values[name]


def _at(document: Any, pointer: str) -> str | None:
    found = find_pointer(document, pointer)
    if isinstance(found, str | int | float) and not isinstance(found, bool):
        return str(found)[:MOST_OF_A_VALUE]
    return None
