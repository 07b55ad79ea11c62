"""Incidents of the corpus on a Kubernetes API: objects are loaded from files in the form in which they are read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from incidents.on_api import read
from tarsy.evidence.fields import Object
from tarsy.evidence.reading import KINDS
from tarsy.evidence.report import find_faults
from tarsy.evidence.snapshot import Snapshot, key_of
from tarsy.evidence.topology import Topology
from tarsy.kube.client import KubeClient
from tarsy_dev.incidents.corpus import FOLDER, READ_AT, load_incident

KEPT = ("labels", "annotations", "ownerReferences")
PLACES = {one.kind: one for one in KINDS}
OWN = {"default", "kube-root-ca.crt"}


async def _created(kube: KubeClient, namespace: str, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Creates objects, owners first, and returns them as they must be read: each in the namespace, with its new uid."""
    uids: dict[str, str] = {}
    done = []
    for one in objects:
        text = json.dumps(one).replace('"namespace": "shop"', f'"namespace": "{namespace}"')
        for old, new in uids.items():
            text = text.replace(old, new)
        placed = json.loads(text)
        uid = placed["metadata"]["uid"]
        placed["metadata"] = {
            key: part for key, part in placed["metadata"].items() if key in ("name", "namespace", *KEPT)
        }
        place = PLACES[placed["kind"]].target(namespace)
        body = {key: part for key, part in placed.items() if key != "status"}
        made = await kube.request("POST", place, body=body)
        uids[uid] = made["metadata"]["uid"]
        if status := placed.get("status"):
            body = {"status": status}
            target = f"{place}/{placed['metadata']['name']}/status"
            await kube.request("PATCH", target, body=body, content_type="application/merge-patch+json")
        done.append(placed)
    return done


def _compared(obj: Object) -> dict[str, Any]:
    """Returns the fields that evidence is computed from and that an API server leaves as they are.

    A null counts as an absent field: a real server writes `lastProbeTime: null`, the embedded one leaves it out.
    """
    metadata = {key: text for key, text in obj["metadata"].items() if key in KEPT}
    body = {key: obj[key] for key in ("spec", "status", "reason", "message") if key in obj}
    return {"metadata": metadata, **_without_nulls(body)}


def _without_nulls(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _without_nulls(value) for key, value in part.items() if value is not None}
    return [_without_nulls(value) for value in part] if isinstance(part, list) else part


@pytest.mark.newer_api
@pytest.mark.parametrize("name", ["image-tag-missing", "quota", "pvc-class"])
async def test_an_incident_is_read_from_the_api_as_it_is_loaded(kube: KubeClient, namespace: str, name: str) -> None:
    incident = load_incident(FOLDER / "cases" / f"{name}.yaml")
    objects = [one for one in incident.objects if one["metadata"].get("namespace") == "shop"]
    created = await _created(kube, namespace, [one for one in objects if one["metadata"]["name"] not in OWN])

    kinds = [one for one in KINDS if one.namespaced and not one.optional]
    snapshot = await read(kube, namespace, READ_AT, kinds)
    full = {one.kind for one in kinds if not one.metadata_only}
    for one in created:
        found = snapshot.at(key_of(one))
        assert found, f"{key_of(one)} was not read"
        if one["kind"] in full:
            assert _compared(found) == _compared(one)
    loaded = Snapshot(READ_AT, objects, frozenset((one.kind, "shop") for one in kinds))
    assert _signals(snapshot, namespace) == _signals(loaded, "shop") != []


def _signals(snapshot: Snapshot, namespace: str) -> list[tuple[str, str, str]]:
    """Returns the signals of a namespace, with `shop` for its name."""
    found = find_faults(Topology(snapshot))
    return [(one.rule, one.certainty.value, one.quote.replace(namespace, "shop")) for one in found]
