"""`alerts submit -f FILE|-`: hands an alert in, waits until it is taken, and says which investigation it became.

Decision: the file is what `kubectl apply` takes, an Alert; with `--type` it is the alert itself, as its sender wrote
it, so whatever sends alerts can be piped in.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.cli.timeline import follow_on_screen
from tarsy.client.api import TarsyClient
from tarsy.client.errors import ApiUseError
from tarsy.client.waiting import goes_on, until_taken
from tarsy.record.run import State
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES

_LARGEST = 2 * 1024 * 1024


async def submit_alert(
    door: TarsyClient, namespace: str, alert: Mapping[str, Any], output: Output, *, wait: bool
) -> int:
    """Creates the alert; returns the exit status: with `wait` 0 only when its investigation succeeded.

    Raises:
        ApiUseError: it may not be created, or is not investigated.
    """
    made = await door.submit(namespace, alert)
    aside = beside()
    look = f"kubectl get alerts.tarsy.dev {made.name} -n {namespace}"
    stays = f"alert {namespace}/{made.name} is created and goes on: see what becomes of it with `{look}`"
    with goes_on(stays), aside.status(f"alert {namespace}/{made.name} is submitted and waits to be taken"):
        investigation = await until_taken(door, "Alert", namespace, made.name, _investigation)
    if for_programs(output):
        told = {"namespace": namespace, "alert": made.name, "uid": made.uid, "investigation": investigation}
        write_output(told, output)
        if not wait:
            return 0
        head = await follow_on_screen(door, namespace, investigation, aside)
        return 0 if head.state is State.COMPLETED else 1
    console = printer()
    console.print(f"alert.tarsy.dev/{made.name} created", style="dim")
    console.print(f"investigation.tarsy.dev/{investigation}")
    if not wait:
        return 0
    head = await follow_on_screen(door, namespace, investigation, console, wide=output == "wide")
    return 0 if head.state is State.COMPLETED else 1


def namespace_of(alert: Mapping[str, Any], option: str | None, usual: str) -> str:
    """Where an alert is created: the option, else the alert's own, else the usual one.

    Raises:
        ApiUseError: the alert names another than the option does.
    """
    own = str(alert.get("metadata", {}).get("namespace") or "")
    if option and own and own != option:
        raise ApiUseError(f"the alert is of namespace {own}, and -n says {option}: name one of them")
    return option or own or usual


def read_alert(file: str, alert_type: str | None, name: str | None) -> dict[str, Any]:
    """The Alert to create.

    Args:
        file: of an Alert as YAML or JSON, or of the alert's text where `alert_type` is given; `-` for standard input.
        alert_type: of an alert that is no object.
        name: of the Alert; that in the file, or one that is made, when None.

    Raises:
        ApiUseError: the file cannot be read, or holds no alert.
    """
    text = _text(file)
    if alert_type is not None:
        if len(text.encode()) > MAX_DATA_BYTES:
            raise ApiUseError(f"{_called(file)} is longer than {MAX_DATA_BYTES // 1024} KiB: put it into a ConfigMap")
        if not text.strip():
            raise ApiUseError(f"{_called(file)} is empty: it must hold the alert's text")
        metadata = {"name": name} if name else {"generateName": "alert-"}
        return {**_KIND, "metadata": metadata, "spec": {"alertType": alert_type, "data": text}}
    try:
        found = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        line = (
            f", line {error.problem_mark.line + 1}"
            if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark
            else ""
        )
        raise ApiUseError(f"{_called(file)} is no YAML{line}; of what is no Alert give the --type") from None
    if len(found) != 1 or not isinstance(found[0], dict) or {k: found[0].get(k) for k in _KIND} != _KIND:
        raise ApiUseError(
            f"{_called(file)} must hold one Alert of {API_VERSION}; of an alert that is no such object give the --type"
        )
    alert = found[0]
    metadata = alert.get("metadata") or {}
    if not isinstance(metadata, dict) or not isinstance(alert.get("spec"), dict):
        raise ApiUseError(f"{_called(file)}: metadata and spec must be mappings")
    metadata = {**metadata, "name": name} if name else metadata
    named = metadata if metadata.get("name") or metadata.get("generateName") else {**metadata, "generateName": "alert-"}
    return {**alert, "metadata": named}


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
        raise ApiUseError(f"{_called(file)} is no UTF-8 (byte {error.start})") from None


def _called(file: str) -> str:
    return "standard input" if file == "-" else file
