"""Reads eval cases of RunLore: YAML with one text for each tool, which answers whatever the arguments are.

Such an answer hides wrong arguments, so it has a rung of its own (`wildcard`).
"""

from collections.abc import Mapping
from typing import Any

from tarsy.evals.cassette import AlertRecord, Header, RecordedCall, Truth
from tarsy.evals.imports.building import entities_of, one_line_of, recorded_world, texts_in, time_of, words_in
from tarsy.evals.imports.source import CaseFolder, CaseFormat, ForeignCase
from tarsy.resources.v1alpha1.expectation import Expectation

_KNOWLEDGE = ("commons_dir", "catalog_dir")


def _read(folder: CaseFolder, name: str, server: str) -> ForeignCase | None:
    case = folder.yaml(name)
    tools, expected = case.get("tools"), case.get("expected")
    if "tools" not in case or "expected" not in case:
        return None
    if not isinstance(tools, Mapping) or not tools:
        raise folder.wrong(name, "tools", "must be a mapping of tools to texts; a case without it needs a cluster")
    if not isinstance(expected, Mapping):
        raise folder.wrong(name, "expected", "must be a mapping; correct it")
    prompt = case.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise folder.wrong(name, "prompt", "must be a text; it becomes the alert")
    calls = [_call(folder, name, server, tool, text) for tool, text in tools.items()]
    causes, strange = entities_of(texts_in(expected.get("root_cause_entities")))
    distractors, unusable = entities_of(texts_in(expected.get("distractors")))
    facts = words_in([*texts_in(expected.get("must_contain")), *strange], summary=False)
    expect: dict[str, Any] = {"facts": facts, "distractors": distractors}
    expect |= {"rootCause": {"entities": causes}} if causes else {"verdict": "Cause"}
    told_truth = case.get("ground_truth")
    truth = one_line_of(told_truth.get("root_cause") or "") if isinstance(told_truth, Mapping) else ""
    header = Header(
        alert=AlertRecord(type=one_line_of(case.get("alert_title") or "RunLore")[:253], data=prompt),
        now=time_of([prompt, *(call.result for call in calls)]),
        truth=Truth(summary=truth, entities=tuple(causes), distractors=tuple(distractors)),
    )
    remarks = [
        "Each tool has one answer, whatever its arguments are: calls have the rung wildcard.",
        *(f"{field} is left out: agents here have no such knowledge base." for field in _KNOWLEDGE if field in case),
        *(f"A distractor that is no name of an object is left out: {one_line_of(one)}" for one in unusable),
    ]
    if "min_confidence" in expected:
        remarks.append(f"min_confidence is not checked: {one_line_of(expected['min_confidence'])}")
    return ForeignCase(
        recorded_world(header, server, calls, RUNLORE.title), Expectation.model_validate(expect), tuple(remarks)
    )


def _call(folder: CaseFolder, name: str, server: str, tool: object, text: object) -> RecordedCall:
    if not isinstance(tool, str) or not 0 < len(tool) <= 128:
        raise folder.wrong(name, f"tools.{one_line_of(tool)[:60]}", "must be a name of 1 to 128 characters; correct it")
    if not isinstance(text, str):
        raise folder.wrong(name, f"tools.{tool}", "must be a text; put it in quotes")
    return RecordedCall(server=server, tool=tool, result=text, wildcard=True)


RUNLORE = CaseFormat("runlore", "RunLore", "*.yaml", _read, "runlore")
