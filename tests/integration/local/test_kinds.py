"""Tests this project's kinds on an API with CEL: valid objects are accepted, invalid ones refused with messages."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apis import ApiKind
from integration.local.conftest import Kubectl

pytestmark = [pytest.mark.newer_api, pytest.mark.usefixtures("tarsy_api")]
ROOT = Path(__file__).parents[3]


def investigation(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Investigation", "metadata": meta, "spec": spec}


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


def test_the_confidence_of_a_chain_that_is_not_calibrated_is_listed_with_its_count(
    kubectl: Kubectl, namespace: str
) -> None:
    shown = {
        "old": {"confidence": "High"},
        "doubted": {"confidence": "High", "shownConfidence": "High (12 of 20 right)"},
    }
    for name, finding in {**shown, "none": None}.items():
        made = investigation(name, namespace, alertRef={"name": "a"})
        assert kubectl("create", "-f", "-", stdin=made).returncode == 0
        status = json.dumps({"status": {"phase": "Succeeded", "finding": finding}})
        told = kubectl("patch", "inv", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
        assert told.returncode == 0, told.stderr
    head, doubted, none, old = kubectl("get", "inv", "-n", namespace).stdout.splitlines()
    at = head.index("CONFIDENCE")
    assert [row[at:].startswith(word) for row, word in ((doubted, "High (12 of 20 right)  "), (old, "High   "))] == [
        True
    ] * 2
    assert none[at] == " "


def test_the_times_of_a_schedule_change_and_its_template_does_not(kubectl: Kubectl, namespace: str) -> None:
    template = {"alertType": "Check", "data": "Look."}
    schedule = investigation("morning", namespace, schedule="0 7 * * *", template=template) | {"kind": "AlertSchedule"}
    made = kubectl("create", "-f", "-", stdin=schedule)
    assert made.returncode == 0, made.stderr

    def patch(text: str) -> subprocess.CompletedProcess[str]:
        return kubectl("patch", "tsched", "morning", "-n", namespace, "--type=merge", "-p", text)

    assert patch('{"spec":{"schedule":"0 8 * * *","suspend":true}}').returncode == 0
    other = patch('{"spec":{"template":{"data":"Delete all."}}}')
    assert "spec.template: Forbidden: template cannot be changed; create a new AlertSchedule" in other.stderr
    other = patch('{"spec":{"author":{"username":"mallory"}}}')
    assert "spec.author: Forbidden: author cannot be changed; create a new AlertSchedule" in other.stderr
    head, row = kubectl("get", "tsched", "-n", namespace).stdout.splitlines()
    assert {"SCHEDULE", "SUSPEND", "LAST", "NEXT"} <= set(head.split())
    assert row.startswith("morning") and "0 8 * * *" in row and "true" in row


def test_shipped_library_and_samples_are_accepted(kubectl: Kubectl) -> None:
    for source in (("-k", "manifests/library"), ("-Rf", "manifests/samples")):
        applied = kubectl("apply", source[0], str(ROOT / source[1]), "--dry-run=server")
        refused = [line for line in applied.stderr.splitlines() if "namespaces" not in line and "Warning" not in line]
        assert not refused, applied.stderr


def test_samples_are_not_applied_as_a_whole_by_mistake(kubectl: Kubectl) -> None:
    """An alert would be investigated, and files to fill in would replace the address of the database, and the model."""
    applied = kubectl("apply", "-f", str(ROOT / "manifests/samples"))
    assert applied.returncode != 0 and "recognized file extensions" in applied.stderr
    assert applied.stdout == ""


def test_columns_show_the_spec_and_the_status(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("create", "-f", "-", stdin=investigation("run", namespace, alertRef={"name": "a"})).returncode == 0
    status = '{"status":{"phase":"Queued","confidence":"High"}}'
    patched = kubectl("patch", "inv", "run", "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
    assert patched.returncode == 0, patched.stderr
    head, row = kubectl("get", "inv", "-n", namespace).stdout.splitlines()
    assert {"PHASE", "CONFIDENCE", "AGE"} <= set(head.split())
    assert row.split()[0] == "run" and "Queued" in row


def test_apply_of_two_managers_keeps_both_and_names_a_conflict(kubectl: Kubectl, namespace: str) -> None:
    def applied(manager: str, **spec: Any) -> subprocess.CompletedProcess[str]:
        sent = investigation("run", namespace, alertRef={"name": "a"}, **spec)
        return kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=sent)

    assert applied("one", desiredState="Running").returncode == 0
    assert applied("two", ttlSecondsAfterFinished=60).returncode == 0
    refused = applied("two", ttlSecondsAfterFinished=60, desiredState="Concluded")
    assert refused.returncode == 1 and 'conflict with "one": .spec.desiredState' in refused.stderr
    shown = kubectl(
        "get", "inv", "run", "-n", namespace, "-o", "jsonpath={.spec.desiredState} {.spec.ttlSecondsAfterFinished}"
    )
    assert shown.stdout == "Running 60"


def test_explain_describes_the_fields(kubectl: Kubectl, api_kind: ApiKind) -> None:
    if api_kind == "newer":
        pytest.skip("the embedded API does not merge the OpenAPI documents of the APIs behind it")
    assert "desiredState" in kubectl("explain", "inv.spec").stdout
