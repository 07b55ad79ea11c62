"""Reads cases of Cloud-OpsBench: answers by tool and canonical arguments, and the truth in `metadata.json`.

The cause is a word of its taxonomy (`missing_service_account`), which no finding contains; it is told, and the faulty
object is checked.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tarsy.evals.cassette import AlertRecord, Header, RecordedCall, Truth
from tarsy.evals.imports.building import UNDATED, entities_of, one_line_of, recorded_world, time_of
from tarsy.evals.imports.source import CaseFolder, CaseFormat, ForeignCase
from tarsy.resources.v1alpha1.expectation import Expectation

_ANSWERS, _TRUTH = "tool_cache.json", "metadata.json"
_KINDS = {"node": "Node/", "namespace": "Namespace/"}


def _read(folder: CaseFolder, name: str, server: str) -> ForeignCase:
    answers, metadata = folder.json(name), folder.json(_TRUTH)
    truth = metadata.get("result")
    if not isinstance(truth, Mapping) or not isinstance(truth.get("fault_object"), str):
        raise folder.wrong(_TRUTH, "result.fault_object", "must be a text such as app/NAME; copy the file again")
    calls = tuple(_calls(answers, server))
    if not calls:
        raise folder.wrong(name, "its keys", "must be TOOL:{arguments} with a text each; copy the file again")
    kind, _, named = str(truth["fault_object"]).rpartition("/")
    entities, _ = entities_of([_KINDS.get(kind.lower(), "") + named])
    if not entities:
        raise folder.wrong(_TRUTH, "result.fault_object", f"{one_line_of(named)!r} is no name of an object; correct it")
    namespace, query = one_line_of(metadata.get("namespace") or "default"), one_line_of(metadata.get("query") or "")
    cause = one_line_of(truth.get("root_cause") or "")
    alert = f"{query or 'An alert fires.'}\nNamespace: {namespace}"
    when = time_of([str(answers.get("collection_timestamp", "")) + "Z", *(call.result for call in calls)])
    header = Header(
        alert=AlertRecord(type="CloudOpsBench", data=alert),
        now=when,
        truth=Truth(summary=cause, category=one_line_of(truth.get("fault_taxonomy") or ""), entities=tuple(entities)),
    )
    remarks = [f"Cause by its taxonomy, which is not checked: {cause}"]
    if when == UNDATED:
        remarks.append("No time is recorded; the prompts tell the 1st of January 2025.")
    expect = Expectation.model_validate({"rootCause": {"entities": entities}})
    return ForeignCase(recorded_world(header, server, calls, CLOUD_OPSBENCH.title), expect, tuple(remarks))


def _calls(answers: Mapping[str, Any], server: str) -> Iterator[RecordedCall]:
    for key, answer in answers.items():
        tool, colon, given = key.partition(":")
        try:
            arguments = json.loads(given) if colon else None
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict) or not 0 < len(tool) <= 128:
            continue
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        yield RecordedCall(
            server=server, tool=tool, arguments=arguments, result=text, is_error=text.startswith("Error")
        )


CLOUD_OPSBENCH = CaseFormat("cloud-opsbench", "Cloud-OpsBench", _ANSWERS, _read, "cloud-opsbench")
