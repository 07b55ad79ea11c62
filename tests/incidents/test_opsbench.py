"""The rules on recorded answers in the form of Cloud-OpsBench: cases of our own, and folders that are none."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tarsy.evidence.rules.table import RULES
from tarsy.evidence.snapshot import ObjectKey
from tarsy_dev.incidents.corpus import READ_AT
from tarsy_dev.opsbench import cases, score
from tarsy_dev.opsbench.cases import ANSWERS, TRUTH, NoCases, Unreadable, find_cases, read_case
from tarsy_dev.opsbench.describe import MOST_CHARACTERS, parse_description, parse_table
from tarsy_dev.opsbench.objects import described

OWN = Path(__file__).parent / "opsbench" / "cases_of_our_own"
TRUE = {"namespace": "shop", "result": {"fault_taxonomy": "A_Fault", "root_cause": "x", "fault_object": "app/y"}}


def _case(folder: Path, answers: str = "{}", truth: str = json.dumps(TRUE)) -> Path:
    folder.mkdir(parents=True)
    (folder / ANSWERS).write_text(answers)
    (folder / TRUTH).write_text(truth)
    return folder


@pytest.mark.parametrize("name", ["quota", "image-tag-missing", "service-selector"])
def test_the_first_signal_of_a_case_is_right(name: str) -> None:
    assert score.place_of(read_case(OWN / name, OWN)).place == 1


def test_a_signal_about_another_object_or_of_another_cause_is_not_right() -> None:
    case = read_case(OWN / "quota", OWN)
    other_object = cases.Case(case.name, case.category, case.cause, "app/other", case.snapshot)
    other_cause = cases.Case(case.name, case.category, "kubelet_unavailable", case.object, case.snapshot)
    unknown = cases.Case(case.name, case.category, "code_busy_loop", case.object, case.snapshot)
    assert [score.place_of(one).place for one in (other_object, other_cause, unknown)] == [None, None, None]


def test_causes_stand_for_rules_that_exist() -> None:
    known = {one.name for one in RULES}
    assert {rule for rules in score.CAUSES.values() for rule in rules} <= known


def test_the_table_has_a_row_by_category_and_one_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert score.measure_rules(OWN) == 0
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines() if "1.00 (" in line] == [
        "admission",
        "service",
        "startup",
        "all",
    ]
    assert "3 cases read, 0 unreadable; no model was asked." in shown


def test_a_limit_is_the_number_of_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert score.measure_rules(OWN, 1) == 0
    assert "1 cases read" in capsys.readouterr().out


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: None], ids=["empty", "file", "missing"])
def test_a_folder_without_cases_is_a_sentence(
    make: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "data")
    with pytest.raises(NoCases, match="give the folder of a checkout of Cloud-OpsBench"):
        find_cases(tmp_path / "data")
    assert score.measure_rules(tmp_path / "data") == 2
    assert "give the folder of a checkout" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("answers", "truth", "told"),
    [
        ("{", json.dumps(TRUE), f"{ANSWERS} is no JSON"),
        ("[]", json.dumps(TRUE), f"{ANSWERS} is no JSON object"),
        ("[" * 100_000, json.dumps(TRUE), f"{ANSWERS} is no JSON"),
        ("{}", "\ufffd", f"{TRUTH} is no JSON"),
        ("{}", "{}", f"{TRUTH} has no result"),
        ("{}", '{"result": {"root_cause": 1}}', f"{TRUTH} has no result"),
    ],
)
def test_a_case_that_cannot_be_read_is_counted(
    answers: str, truth: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _case(tmp_path / "good")
    bad = _case(tmp_path / "bad", answers, truth)
    with pytest.raises(Unreadable, match=told):
        read_case(bad, tmp_path)
    assert score.measure_rules(tmp_path) == 0
    assert "1 cases read, 1 unreadable" in capsys.readouterr().out


def test_a_case_without_a_truth_is_counted(tmp_path: Path) -> None:
    (_case(tmp_path / "bad") / TRUTH).unlink()
    with pytest.raises(Unreadable, match=f"{TRUTH} cannot be read: No such file"):
        read_case(tmp_path / "bad", tmp_path)


@pytest.mark.parametrize(("more", "is_read"), [(-1, True), (0, True), (1, False)])
def test_a_file_has_a_maximum_size(more: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _case(tmp_path / "one", answers=json.dumps({"GetAlerts:{}": "x" * 1_000}))
    monkeypatch.setattr(cases, "MOST_BYTES", (folder / ANSWERS).stat().st_size - more)
    if is_read:
        assert read_case(folder, tmp_path).name == "one"
    else:
        with pytest.raises(Unreadable, match="is larger than"):
            read_case(folder, tmp_path)


@pytest.mark.parametrize(
    "answers",
    [
        {"no call": "x"},
        {"GetResources:{": "x"},
        {"GetResources:[]": "x"},
        {'GetResources:{"resource_type":"pods"}': None},
        {'GetResources:{"resource_type":"gadgets"}': "NAME\nx"},
        {'GetAppYAML:{"app_name":"x"}': "a: [b"},
        {'GetAppYAML:{"app_name":"x"}': "kind: Pod"},
        {"collection_timestamp": "yesterday"},
    ],
    ids=str,
)
def test_answers_of_another_form_are_left_out(answers: dict[str, Any], tmp_path: Path) -> None:
    found = read_case(_case(tmp_path / "one", json.dumps(answers)), tmp_path)
    assert list(found.snapshot.all_keys()) == []


def test_a_list_that_failed_does_not_say_that_nothing_is_there(tmp_path: Path) -> None:
    answers = {
        'GetResources:{"resource_type":"pods","name":""}': "Error from server (Forbidden): pods is forbidden",
        'GetResources:{"resource_type":"nodes","name":""}': "NAME   STATUS   AGE\nnode-1   Ready   4d\n",
        'GetResources:{"resource_type":"services","name":"x"}': "NAME   TYPE\nx   ClusterIP\n",
    }
    snapshot = read_case(_case(tmp_path / "one", json.dumps(answers)), tmp_path).snapshot
    assert snapshot.listed == {("Node", "")}
    assert list(snapshot.all_keys()) == [ObjectKey("Node", "", "node-1")]


def test_a_description_is_fields_further_lines_and_tables() -> None:
    text = "Name:    x\nLabels:  a=b\n         c=d\nNode:    <none>\nBox:\n  inner:\n    Port:  80/TCP\nEvents:\n" \
        "  Type     Reason  Age   From     Message\n  ----     ------  ----  ----     -------\n" \
        "  Warning  Failed  2m    kubelet  Error: a  b\n"  # fmt: skip
    found = parse_description(text)
    assert (found.get("Name"), found.get("Node"), found.get("Box", "inner", "Port")) == ("x", "", "80/TCP")
    assert found.pairs("Labels") == {"a": "b", "c": "d"}
    assert found.rows("Events") == [["Warning", "Failed", "2m", "kubelet", "Error: a  b"]]


@pytest.mark.parametrize("text", ["", "\n\n", ":", "  :\n x", "Events:\n\n", "a: b\n\t\tc", "No resources found"])
def test_odd_texts_are_no_error(text: str) -> None:
    assert parse_description(text).rows("Events") == []
    assert list(parse_table(text)) == []


@pytest.mark.parametrize(("more", "is_there"), [(-1, True), (0, True), (1, False)])
def test_a_text_is_read_up_to_its_maximum(more: int, is_there: bool) -> None:
    text = "a: b\n" * ((MOST_CHARACTERS - 8) // 5)
    text += "x" * (MOST_CHARACTERS - 6 - len(text) + more) + "\nz: 1"
    assert len(text) == MOST_CHARACTERS - 1 + more
    assert (parse_description(text + "2").get("z") == "12") is is_there


POD = """Name: worker-1
Status: Terminating (lasts 5m)
Containers:
  app:
    Image:  worker:2
    Port:   8080/TCP
    State:  Waiting
      Reason:  CreateContainerConfigError
    Liveness:  http-get http://:9090/live delay=0s
    Environment Variables from:
      worker-config  ConfigMap  Optional: false
      worker-keys    Secret     Optional: true
    Environment:
      MODE:   fast
      TOKEN:  <set to the key 'token' in secret 'worker-token'>   Optional: false
Events:
  Type     Reason  Age                From     Message
  ----     ------  ---                ----     -------
  Warning  Failed  9s (x3 over 1m5s)  kubelet  Error: secret "worker-token" not found
"""


def _pod(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    pod, event = described("Pod", "shop", "worker-1", parse_description(text), READ_AT)
    return pod, event


def test_a_described_pod_has_its_references_and_probes() -> None:
    (container,) = _pod(POD)[0]["spec"]["containers"]
    assert container["envFrom"] == [
        {"configMapRef": {"name": "worker-config", "optional": False}},
        {"secretRef": {"name": "worker-keys", "optional": True}},
    ]
    source = {"key": "token", "name": "worker-token", "optional": False}
    assert container["env"] == [
        {"name": "MODE", "value": "fast"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": source}},
    ]
    assert container["livenessProbe"] == {"httpGet": {"port": 9090, "path": "/live"}}
    assert container["ports"] == [{"containerPort": 8080}]


def test_a_waiting_container_waits_for_what_the_latest_event_says() -> None:
    pod, event = _pod(POD)
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"]["waiting"]["message"] == 'secret "worker-token" not found'
    assert event["lastTimestamp"] == (READ_AT - timedelta(seconds=9)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_pod_that_terminates_is_being_deleted() -> None:
    assert "deletionTimestamp" in _pod(POD)[0]["metadata"]
    assert "deletionTimestamp" not in _pod(POD.replace("Terminating (lasts 5m)", "Pending"))[0]["metadata"]
