"""Submits an alert, waits until it is accepted and prints its investigation (`alerts submit -f FILE|-`).

Decision: the file contains an Alert, as for `kubectl apply`; with `--type` or `--text` it contains the text of the
alert, so any sender can be piped in.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.cli.runs.timeline import follow_on_screen
from tarsy.client.api import TarsyClient
from tarsy.client.errors import ApiUseError
from tarsy.client.waiting import goes_on, until_taken
from tarsy.record.run import State
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES

_LARGEST = 2 * 1024 * 1024


async def submit_and_print(
    client: TarsyClient, namespace: str, alert: Mapping[str, Any], output: Output, *, wait: bool
) -> int:
    """Creates an alert; returns the exit status, with `wait` 0 only if its investigation succeeds.

    Args:
        client: the API.
        namespace: the namespace of the alert.
        alert: its manifest.
        output: for people, or the format for programs.
        wait: follow the investigation to its end.

    Raises:
        ApiUseError: the alert may not be created, or is not investigated.
    """
    made = await client.submit(namespace, alert)
    aside = beside()
    look = f"kubectl get alerts.tarsy.dev {made.name} -n {namespace}"
    stays = f"alert {namespace}/{made.name} is created and continues: see its state with `{look}`"
    with goes_on(stays), aside.status(f"alert {namespace}/{made.name} is submitted and waits for the operator"):
        investigation = await until_taken(client, "Alert", namespace, made.name, _investigation)
    if for_programs(output):
        told = {"namespace": namespace, "alert": made.name, "uid": made.uid, "investigation": investigation}
        write_output(told, output)
        if not wait:
            return 0
        head = await follow_on_screen(client, namespace, investigation, aside)
        return 0 if head.state is State.COMPLETED else 1
    console = printer()
    console.print(f"alert.tarsy.dev/{made.name} created", style="dim")
    console.print(f"investigation.tarsy.dev/{investigation}")
    if not wait:
        return 0
    head = await follow_on_screen(client, namespace, investigation, console, wide=output == "wide")
    return 0 if head.state is State.COMPLETED else 1


def namespace_of(alert: Mapping[str, Any], option: str | None, usual: str) -> str:
    """Returns the namespace of an alert: that of the option, else of the alert, else the default.

    Args:
        alert: the manifest.
        option: the namespace of the option; None: not given.
        usual: the default namespace.

    Raises:
        ApiUseError: the alert and the option name different namespaces.
    """
    own = str(alert.get("metadata", {}).get("namespace") or "")
    if option and own and own != option:
        raise ApiUseError(f"the alert is of namespace {own}, and -n names {option}; use one of them")
    return option or own or usual


def read_alert(file: str, alert_type: str | None, name: str | None, *, text: bool = False) -> dict[str, Any]:
    """Reads the Alert to create.

    Args:
        file: an Alert as YAML or JSON, or with `alert_type` or `text` the text of the alert; `-` for standard input.
        alert_type: the type of an alert that is only text.
        name: the name of the Alert; None: that of the file, else a generated one.
        text: whether the file is the text of an alert of the default type of its namespace.

    Raises:
        ApiUseError: the file cannot be read, or contains no alert.
    """
    content = _text(file)
    if text or alert_type is not None:
        if len(content.encode()) > MAX_DATA_BYTES:
            raise ApiUseError(f"{_called(file)} is longer than {MAX_DATA_BYTES // 1024} KiB: put it into a ConfigMap")
        if not content.strip():
            raise ApiUseError(f"{_called(file)} is empty: it must contain the text of the alert")
        typed = {"alertType": alert_type} if alert_type is not None else {}
        metadata = {"name": name} if name else {"generateName": "alert-"}
        return {**_KIND, "metadata": metadata, "spec": {**typed, "data": content}}
    try:
        found = [one for one in yaml.safe_load_all(content) if one is not None]
    except yaml.YAMLError as error:
        line = (
            f", line {error.problem_mark.line + 1}"
            if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark
            else ""
        )
        raise ApiUseError(f"{_called(file)} is not YAML{line}; {_ONLY_TEXT}") from None
    if len(found) != 1 or not isinstance(found[0], dict) or {k: found[0].get(k) for k in _KIND} != _KIND:
        raise ApiUseError(f"{_called(file)} must contain one Alert of {API_VERSION}; {_ONLY_TEXT}")
    alert = found[0]
    metadata = alert.get("metadata") or {}
    if not isinstance(metadata, dict) or not isinstance(alert.get("spec"), dict):
        raise ApiUseError(f"{_called(file)}: metadata and spec must be mappings")
    metadata = {**metadata, "name": name} if name else metadata
    named = metadata if metadata.get("name") or metadata.get("generateName") else {**metadata, "generateName": "alert-"}
    return {**alert, "metadata": named}


_ONLY_TEXT = "name the --type of an alert that is only text, or add --text"
_KIND = {"apiVersion": API_VERSION, "kind": "Alert"}


def _investigation(obj: Mapping[str, Any]) -> str | None:
    name = ((obj.get("status") or {}).get("investigationRef") or {}).get("name")
    return str(name) if name else None


def _text(file: str) -> str:
    try:
        if file == "-":
            content = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise ApiUseError(f"{file} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise ApiUseError(f"{_called(file)} is larger than {_LARGEST // 2**20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ApiUseError(f"{_called(file)} is not UTF-8 (byte {error.start})") from None


def _called(file: str) -> str:
    return "standard input" if file == "-" else file
