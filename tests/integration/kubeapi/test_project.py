"""Tests this project's kinds on the embedded API: valid objects are accepted, invalid ones refused with messages."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def kinds(kubectl: Kubectl) -> None:
    applied = kubectl("apply", "-k", str(ROOT / "crds"))
    assert applied.returncode == 0, applied.stderr


def investigation(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Investigation", "metadata": meta, "spec": spec}


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {},
            "set exactly one of alertRef (the name of an Alert) and alert (the alert itself); retryOf alone",
        ),
        ({"alertRef": {"name": "Bad_"}}, 'spec.alertRef.name: Invalid value: "Bad_"'),
        ({"alertRef": {"name": "a"}, "desiredState": "Gone"}, 'supported values: "Running", "Concluded", "Cancelled"'),
        ({"alertRef": {"name": "a"}, "odd": 1}, 'unknown field "spec.odd"'),
        ({"alert": {"alertType": "A"}}, "set exactly one of data (the text itself) and dataFrom.configMapKeyRef"),
        ({"alert": {"alertType": "A", "data": "   "}}, "spec.alert.data: Invalid value"),
        ({"alertRef": {"name": "a"}, "ttlSecondsAfterFinished": -1}, "should be greater than or equal to 0"),
    ],
)
def test_bad_investigation_is_refused(kubectl: Kubectl, namespace: str, spec: dict[str, Any], message: str) -> None:
    refused = kubectl("apply", "-f", "-", stdin=investigation("bad", namespace, **spec))
    assert refused.returncode == 1
    assert message in refused.stderr.replace("\\", "")


@pytest.mark.usefixtures("kinds")
def test_investigation_goes_only_forward(kubectl: Kubectl, namespace: str) -> None:
    made = kubectl("create", "-f", "-", stdin=investigation("run", namespace, alertRef={"name": "a"}))
    assert made.returncode == 0, made.stderr

    def patch(text: str) -> subprocess.CompletedProcess[str]:
        return kubectl("patch", "inv", "run", "-n", namespace, "--type=merge", "-p", text)

    assert patch('{"spec":{"desiredState":"Concluded"}}').returncode == 0
    back = patch('{"spec":{"desiredState":"Running"}}')
    assert "spec.desiredState: Forbidden: desiredState can only move forward" in back.stderr
    other = patch('{"spec":{"alertRef":{"name":"b"}}}')
    assert "spec.alertRef: Forbidden: alertRef cannot be changed; create a new Investigation" in other.stderr
    assert "run" in kubectl("get", "inv", "--field-selector", "spec.alertRef.name=a", "-n", namespace).stdout
    assert "run" not in kubectl("get", "inv", "--field-selector", "spec.alertRef.name=b", "-n", namespace).stdout
    assert "desiredState" in kubectl("explain", "inv.spec").stdout


@pytest.mark.usefixtures("kinds")
def test_shipped_library_and_samples_are_accepted(kubectl: Kubectl) -> None:
    for source in (("-k", "manifests/library"), ("-Rf", "manifests/samples")):
        applied = kubectl("apply", source[0], str(ROOT / source[1]), "--dry-run=server")
        refused = [line for line in applied.stderr.splitlines() if "namespaces" not in line and "Warning" not in line]
        assert not refused, applied.stderr


@pytest.mark.usefixtures("kinds")
def test_samples_are_not_applied_as_a_whole_by_mistake(kubectl: Kubectl) -> None:
    """An alert would be investigated, and files to fill in would replace the address of the database, and the model."""
    applied = kubectl("apply", "-f", str(ROOT / "manifests/samples"))
    assert applied.returncode != 0 and "recognized file extensions" in applied.stderr
    assert applied.stdout == ""
