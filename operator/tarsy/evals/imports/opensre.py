"""Reads synthetic scenarios of OpenSRE: one JSON file for each backend, `answer.yml`, `scenario.yml`, `alert.json`.

A scenario takes the files that it lacks from its `base`. Its backends answer whatever the arguments are, so their
answers are wildcards; those with the log of a pod need its name.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tarsy.evals.cassette import AlertRecord, Header, RecordedCall, Truth
from tarsy.evals.imports.building import one_line_of, recorded_world, texts_in, time_of, words_in
from tarsy.evals.imports.source import CaseFolder, CaseFormat, ForeignCase
from tarsy.resources.v1alpha1.expectation import Expectation

_ANSWER, _SCENARIO, _ALERT = "answer.yml", "scenario.yml", "alert.json"
_TOOLS = {
    "eks_pods": "list_eks_pods",
    "eks_events": "get_eks_events",
    "eks_deployments": "list_eks_deployments",
    "eks_node_health": "get_eks_node_health",
    "eks_pod_logs": "get_eks_pod_logs",
    "datadog_logs": "query_datadog_logs",
    "datadog_monitors": "query_datadog_monitors",
}
_OF_ONE_POD = "eks_pod_logs"
_MOST_BASES = 5


def _read(folder: CaseFolder, name: str, server: str) -> ForeignCase:
    answer, scenario, alert = folder.yaml(name), folder.yaml(_SCENARIO), folder.json(_ALERT)
    category = answer.get("root_cause_category")
    if not isinstance(category, str):
        raise folder.wrong(name, "root_cause_category", "must be a text such as healthy; copy the file again")
    listed = texts_in(scenario.get("available_evidence")) or list(_TOOLS)
    missing = sorted(one for one in listed if one not in _TOOLS)
    calls = tuple(_calls(folder, scenario, [one for one in listed if one in _TOOLS], server))
    if not calls:
        raise folder.wrong(_SCENARIO, "available_evidence", f"names no file that is there; known: {', '.join(_TOOLS)}")
    labels = alert.get("commonLabels")
    kind = one_line_of(labels.get("alertname") or "") if isinstance(labels, Mapping) else ""
    keywords = texts_in(answer.get("required_keywords"))
    made = {f"{server}.{call.tool}" for call in calls}
    required = [f"{server}.{one}" for one in texts_in(answer.get("required_queries")) if f"{server}.{one}" in made]
    healthy = category == "healthy"
    expect: dict[str, Any] = {"verdict": "NoFault" if healthy else "Cause", "facts": words_in(keywords, summary=True)}
    if required:
        expect["tools"] = {"required": list(dict.fromkeys(required))}
    data = json.dumps(alert, indent=2, ensure_ascii=False)
    header = Header(
        alert=AlertRecord(type=(kind or "OpenSRE")[:253], data=data),
        now=time_of([data, *(call.result for call in calls)]),
        truth=Truth(
            verdict="NoFault" if healthy else "Cause", category=one_line_of(category), keywords=_short(keywords),
            forbidden=_short(texts_in(answer.get("forbidden_categories"))), required_tools=_short(required),
        ),
    )  # fmt: skip
    remarks = [
        f"Category, which is not checked: {one_line_of(category)}",
        *(
            f"Ruled out, which is not checked: {one_line_of(word)}"
            for word in texts_in(answer.get("ruling_out_keywords"))
        ),
        *(f"Evidence without a known tool is left out: {one_line_of(one)}" for one in missing),
    ]
    return ForeignCase(
        recorded_world(header, server, calls, OPENSRE.title), Expectation.model_validate(expect), tuple(remarks)
    )


def _short(words: list[str]) -> tuple[str, ...]:
    return tuple(one_line_of(word) for word in words[:100])


def _calls(folder: CaseFolder, scenario: Mapping[str, Any], listed: list[str], server: str) -> Iterator[RecordedCall]:
    places = [folder, *_bases(folder, scenario)]
    for evidence in dict.fromkeys(listed):
        file = f"{evidence}.json"
        place = next((one for one in places if file in one.names), None)
        if place is None:
            continue
        found = place.json(file)
        arguments: dict[str, Any] = {}
        if evidence == _OF_ONE_POD:
            arguments = {key: found[key] for key in ("pod_name", "namespace") if isinstance(found.get(key), str)}
        text = json.dumps(found, indent=2, ensure_ascii=False)
        yield RecordedCall(server=server, tool=_TOOLS[evidence], arguments=arguments, result=text, wildcard=True)


def _bases(folder: CaseFolder, scenario: Mapping[str, Any]) -> Iterator[CaseFolder]:
    for _ in range(_MOST_BASES):
        base = scenario.get("base")
        if not isinstance(base, str):
            return
        folder = folder.beside(base)
        yield folder
        scenario = folder.yaml(_SCENARIO)


OPENSRE = CaseFormat("opensre", "OpenSRE", _ANSWER, _read, "opensre")
