"""The file that an alert is handed in by."""

from pathlib import Path

import pytest
import yaml

from tarsy.cli.requests.submit import namespace_of, read_alert
from tarsy.client.errors import ApiUseError
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES

ALERT = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Alert", "spec": {"alertType": "X", "data": "y"}}


def file(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "alert.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_an_alert_without_a_name_gets_one_and_keeps_the_one_it_has(tmp_path: Path) -> None:
    assert read_alert(file(tmp_path, yaml.safe_dump(ALERT)), None, None)["metadata"] == {"generateName": "alert-"}
    named = yaml.safe_dump({**ALERT, "metadata": {"name": "disk", "labels": {"a": "b"}}})
    assert read_alert(file(tmp_path, named), None, None)["metadata"] == {"name": "disk", "labels": {"a": "b"}}
    assert read_alert(file(tmp_path, named), None, "other")["metadata"]["name"] == "other"


def test_with_a_type_the_file_is_the_alerts_text_up_to_its_limit(tmp_path: Path) -> None:
    text = "x" * MAX_DATA_BYTES
    made = read_alert(file(tmp_path, text), "KubePodCrashLooping", None)
    assert made["spec"] == {"alertType": "KubePodCrashLooping", "data": text}
    assert made["kind"] == "Alert"
    with pytest.raises(ApiUseError, match="longer than 256 KiB"):
        read_alert(file(tmp_path, text + "x"), "KubePodCrashLooping", None)
    with pytest.raises(ApiUseError, match="is empty"):
        read_alert(file(tmp_path, " \n"), "KubePodCrashLooping", None)


def test_text_without_a_type_leaves_the_type_to_the_namespace(tmp_path: Path) -> None:
    assert read_alert(file(tmp_path, "kind: [no YAML"), None, "one", text=True) == {
        **{"apiVersion": API_VERSION, "kind": "Alert", "metadata": {"name": "one"}},
        "spec": {"data": "kind: [no YAML"},
    }
    with pytest.raises(ApiUseError, match="or add --text"):
        read_alert(file(tmp_path, "kind: [no YAML"), None, "one")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "is not YAML"),
        ("!!python/object/apply:os.system [echo]", "is not YAML"),
        (yaml.safe_dump_all([ALERT, ALERT]), "must contain one Alert"),
        (yaml.safe_dump({**ALERT, "kind": "Chain"}), "must contain one Alert"),
        ("", "must contain one Alert"),
        ('{"groupLabels": {}}', "name the --type"),
        (yaml.safe_dump({**ALERT, "spec": []}), "must be mappings"),
        (b"\xff\xfe", "is not UTF-8"),
        (b" " * (2 * 1024 * 1024 + 1), "larger than 2 MiB"),
    ],
)
def test_what_is_no_alert_is_refused_in_a_sentence(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(ApiUseError, match=words):
        read_alert(file(tmp_path, content), None, None)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ApiUseError, match="cannot be read: No such file"):
        read_alert(str(tmp_path / "none"), None, None)


def test_the_namespace_is_the_options_or_the_alerts_and_never_one_of_two() -> None:
    assert namespace_of({}, None, "usual") == "usual"
    assert namespace_of({"metadata": {"namespace": "own"}}, None, "usual") == "own"
    assert namespace_of({"metadata": {"namespace": "own"}}, "own", "usual") == "own"
    with pytest.raises(ApiUseError, match="use one of them"):
        namespace_of({"metadata": {"namespace": "own"}}, "other", "usual")
