"""Reads tests of HolmesGPT: `test_case.yaml`, and one text file for each recorded tool call.

The first line of such a file is JSON with the tool and `match_params`, the second JSON with the status of the call, the
rest its result. A parameter `*`, and a file without `match_params`, match all values: such answers are wildcards.

The expected output is prose that HolmesGPT has a model judge. The names in back quotes are checked; a case without any
fails until somebody writes its expectation.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from tarsy.evals.cassette import AlertRecord, Header, RecordedCall, Truth
from tarsy.evals.imports.building import one_line_of, recorded_world, texts_in, time_of, to_be_written, words_in
from tarsy.evals.imports.source import CaseFolder, CaseFormat, ForeignCase
from tarsy.resources.v1alpha1.expectation import Expectation

_TEST, _ISSUE, _ALERT = "test_case.yaml", "issue_data.json", "investigate_request.json"
_QUOTED = re.compile(r"`([^`\n]{2,200})`")


def _read(folder: CaseFolder, name: str, server: str) -> ForeignCase:
    test = folder.yaml(name)
    expected = texts_in(test.get("expected_output"))
    if not expected:
        raise folder.wrong(name, "expected_output", "must be a text or a list of texts; copy the file again")
    calls: list[RecordedCall] = []
    remarks: list[str] = []
    for file in folder.names:
        if file.endswith(".txt"):
            call = _call(folder, file, server)
            if call is None:
                remarks.append(f"{one_line_of(file)} is no recorded call and is left out.")
            else:
                calls.append(call)
    if not calls:
        raise folder.wrong(name, "the case", "has no recorded tool call (*.txt), it needs a live cluster; leave it out")
    kind, data = _alert(folder, test, name)
    facts = words_in((word for text in expected for word in _QUOTED.findall(text)), summary=False)
    header = Header(
        alert=AlertRecord(type=kind, data=data),
        now=time_of([data, *(call.result for call in calls)]),
        truth=Truth(summary=one_line_of(expected)),
    )
    expect = Expectation.model_validate({"facts": facts or [to_be_written(one_line_of(expected))]})
    remarks += [f"Expected in prose, which is not checked: {one_line_of(one)}" for one in expected]
    return ForeignCase(recorded_world(header, server, calls, HOLMESGPT.title), expect, tuple(remarks))


def _alert(folder: CaseFolder, test: Mapping[str, Any], name: str) -> tuple[str, str]:
    question = texts_in(test.get("user_prompt"))
    if question:
        return "HolmesGPT", question[0]
    file = next((one for one in (_ALERT, _ISSUE) if one in folder.names), None)
    if file is None:
        raise folder.wrong(name, "user_prompt", f"must be a text, or {_ISSUE} must be beside the file; add one of them")
    found = folder.json(file)
    title = one_line_of(found.get("title") or "")
    return (title or "HolmesGPT")[:253], json.dumps(found, indent=2, ensure_ascii=False)


def _call(folder: CaseFolder, file: str, server: str) -> RecordedCall | None:
    first, _, rest = folder.text(file).partition("\n")
    head = _object(first)
    tool = head.get("tool_name") if head is not None else None
    if head is None or not isinstance(tool, str):
        return None
    if not 0 < len(tool) <= 128:
        raise folder.wrong(file, "tool_name", "must have 1 to 128 characters; correct it")
    given = head.get("match_params")
    if given is not None and not isinstance(given, dict):
        raise folder.wrong(file, "match_params", "must be a JSON object; correct it")
    second, _, text = rest.partition("\n")
    outcome = _object(second)
    if outcome is None or "status" not in outcome:
        text, outcome = rest, {}
    is_error = outcome.get("status") == "error"
    if is_error and not text.strip() and isinstance(outcome.get("error"), str):
        text = str(outcome["error"])
    known = {key: value for key, value in (given or {}).items() if value != "*"}
    return RecordedCall(
        server=server, tool=tool, arguments=known, result=text, is_error=is_error,
        wildcard=given is None or len(known) < len(given),
    )  # fmt: skip


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


HOLMESGPT = CaseFormat("holmesgpt", "HolmesGPT", _TEST, _read, "holmesgpt")
