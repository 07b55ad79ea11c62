"""Reads snapshots of ITBench (ITBench-Lite): objects, events and logs in TSV, alerts in JSON, and `ground_truth.yaml`.

A snapshot has no tool calls. These are computed from it, under the names of kubernetes-mcp-server where it has such a
tool: lists of objects by kind and namespace in their last version (one object is derived from a list), events by
namespace, the last lines of log by service, and the alerts. Metrics and traces cannot be answered without computing on
them, so they are left out, which every case tells.
"""

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from tarsy.evals.cassette import MAX_LINE_BYTES, AlertRecord, Header, RecordedCall, Truth
from tarsy.evals.imports.building import entities_of, one_line_of, recorded_world, time_of
from tarsy.evals.imports.source import CaseFolder, CaseFormat, ForeignCase
from tarsy.resources.v1alpha1.expectation import Expectation

_TRUTH = "ground_truth.yaml"
_OBJECTS, _EVENTS, _LOGS = "k8s_objects_raw.tsv", "k8s_events_raw.tsv", "otel_logs_raw.tsv"
_MOST_OBJECTS, _MOST_LINES, _MOST_EVENTS = 20_000, 500, 500
_MOST_SERVICES = 500
_MOST_RESULT = MAX_LINE_BYTES // 4
_PLAIN = re.compile(r"\^?([a-z0-9][-a-z0-9.]*[a-z0-9])")
_ALERTS = re.compile(r"(?:alerts/)?alerts?.*\.json")
_NOT_TAKEN = "Metrics and traces are left out: answers about them would have to be computed."


def _read(folder: CaseFolder, name: str, server: str) -> ForeignCase:
    causes, strange = entities_of(_causes(folder, folder.yaml(name), name))
    if not causes:
        raise folder.wrong(name, "groups", "has no root cause with a name or a simple filter; add its name")
    remarks = [
        _NOT_TAKEN,
        *(f"A root cause that is no name of an object is left out: {one_line_of(one)}" for one in strange),
    ]
    found = list(_alerts(folder))
    calls = [
        *([RecordedCall(server=server, tool="get_alerts", result=_json(found))] if found else []),
        *_objects(folder, server),
        *_events(folder, server),
        *_logs(folder, server),
    ]
    kept = [call for call in calls if len(call.result.encode()) <= _MOST_RESULT]
    remarks += [
        f"{call.tool} {one_line_of(call.arguments)} is left out: it has more than {_MOST_RESULT:,} bytes."
        for call in calls
        if call not in kept
    ]
    if not kept:
        raise folder.wrong(_OBJECTS, "the snapshot", "has no object, event, log or alert; copy it again")
    data = _json(found) if found else "An alert fires; the snapshot has no file of it."
    kind = next((one_line_of(one["labels"].get("alertname") or "") for one in found), "")
    header = Header(
        alert=AlertRecord(type=(kind or "ITBench")[:253], data=data),
        now=time_of([data] if found else [call.result for call in kept]),
        truth=Truth(entities=tuple(causes)),
    )
    expect = Expectation.model_validate({"rootCause": {"entities": causes}})
    return ForeignCase(recorded_world(header, server, kept, ITBENCH.title), expect, tuple(remarks))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _causes(folder: CaseFolder, truth: Mapping[str, Any], name: str) -> Iterator[str]:
    spec = truth.get("spec")
    groups = truth.get("groups") or (spec.get("groups") if isinstance(spec, Mapping) else None)
    if not isinstance(groups, list):
        raise folder.wrong(name, "groups", "must be a list; copy the file again")
    for group in groups:
        if not isinstance(group, Mapping) or group.get("root_cause") is not True:
            continue
        named, filters = group.get("name"), group.get("filter")
        if isinstance(named, str):
            pattern = named
        else:
            pattern = next((one for one in filters if isinstance(one, str)), "") if isinstance(filters, list) else ""
        plain = _PLAIN.match(pattern)
        if plain is not None:
            yield plain[1].rstrip(".-")
        else:
            yield one_line_of(pattern or group.get("id") or "")


def _alerts(folder: CaseFolder) -> Iterator[dict[str, Any]]:
    """Yields the firing alerts of the last file that has any."""
    for file in sorted((one for one in folder.names if _ALERTS.fullmatch(one)), reverse=True):
        found = folder.json(file)
        data = found.get("data", found)
        alerts = data.get("alerts") if isinstance(data, Mapping) else None
        firing = [
            {key: one[key] for key in ("state", "activeAt", "labels", "annotations") if key in one}
            for one in alerts or ()
            if isinstance(one, Mapping) and one.get("state") == "firing" and isinstance(one.get("labels"), Mapping)
        ]
        if firing:
            yield from firing[:100]
            return


def _bodies(folder: CaseFolder, file: str) -> Iterator[dict[str, Any]]:
    if file not in folder.names:
        return
    for row in folder.rows(file):
        try:
            body = json.loads(row.get("Body") or row.get("body") or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(body, dict):
            found = body.get("object", body)
            if isinstance(found, dict) and isinstance(found.get("metadata"), dict):
                yield found


def _objects(folder: CaseFolder, server: str) -> Iterator[RecordedCall]:
    last: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for body in _bodies(folder, _OBJECTS):
        meta = body["metadata"]
        version, kind = str(body.get("apiVersion") or ""), str(body.get("kind") or "")
        key = (version, kind, str(meta.get("namespace") or ""), str(meta.get("name") or ""))
        if key in last or len(last) < _MOST_OBJECTS:
            last[key] = body
    lists: defaultdict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for (version, kind, namespace, _), body in sorted(last.items()):
        lists[version, kind, namespace].append(body)
    for (version, kind, namespace), items in lists.items():
        where = {"namespace": namespace} if namespace else {}
        arguments = {"apiVersion": version, "kind": kind, **where}
        yield RecordedCall(server=server, tool="resources_list", arguments=arguments, result=_json({"items": items}))


def _events(folder: CaseFolder, server: str) -> Iterator[RecordedCall]:
    by_namespace: defaultdict[str, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=_MOST_EVENTS))
    for body in _bodies(folder, _EVENTS):
        namespace = str(body["metadata"].get("namespace") or "default")
        if namespace in by_namespace or len(by_namespace) < _MOST_SERVICES:
            fields = ("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "involvedObject")
            by_namespace[namespace].append({key: body[key] for key in fields if key in body})
    for namespace, events in sorted(by_namespace.items()):
        arguments = {"namespace": namespace}
        yield RecordedCall(server=server, tool="events_list", arguments=arguments, result=_json(list(events)))


def _logs(folder: CaseFolder, server: str) -> Iterator[RecordedCall]:
    if _LOGS not in folder.names:
        return
    by_service: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=_MOST_LINES))
    for row in folder.rows(_LOGS):
        service, text = row.get("ServiceName") or "", " ".join((row.get("Body") or "").split())
        if service and (service in by_service or len(by_service) < _MOST_SERVICES):
            line = f"{row.get('Timestamp') or ''} {row.get('SeverityText') or ''} {text}"
            by_service[service].append(" ".join(line.split())[:2_000] + "\n")
    for service, lines in sorted(by_service.items()):
        arguments = {"service": service}
        yield RecordedCall(server=server, tool="service_logs", arguments=arguments, result="".join(lines))


ITBENCH = CaseFormat("itbench", "ITBench", _TRUTH, _read, "itbench")
