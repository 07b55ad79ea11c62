"""Sends cases to one API: kubectl as a process, calls over HTTPS with a client certificate.

A watch is a call like another: it asks for `timeoutSeconds`, and its answer is the events until then.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from urllib.parse import urlsplit

import yaml
from tests.drift.cases import Case
from tests.drift.normal import shape_lines, text_lines, value_lines

_KUBECTL_SECONDS = 15.0
_CALL_SECONDS = 20.0
_UNTIL_SECONDS = 4.0
_POLL_SECONDS = 0.2
_SHORTEST_WORD = 5
_ARGUMENT = re.compile(r"'([^']*)'|(\S+)")
_REASON = re.compile(r"Error from server \((\w+)\)")


class Api(Protocol):
    """What the real and the embedded API have in common."""

    @property
    def url(self) -> str: ...
    @property
    def kubeconfig(self) -> Path: ...
    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path: ...


class Session:
    """One API and what was learnt from its answers."""

    def __init__(self, api: Api, kubectl: Path) -> None:
        self._api = api
        self._kubectl = kubectl
        self._words: dict[str, str] = {}
        self._folder = TemporaryDirectory(prefix="tarsy-drift-")
        self._tls: dict[str, ssl.SSLContext] = {}
        self._configs: dict[tuple[str, str], Path] = {}

    def close(self) -> None:
        """Remove the copies of the kubeconfigs."""
        self._folder.cleanup()

    def prepare(self, groups: Sequence[str], objects: Sequence[dict[str, Any]]) -> None:
        """Make the namespaces of the groups, and kinds that all of them use.

        Raises:
            RuntimeError: the API refused.
        """
        namespaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"drift-{group}"}} for group in groups
        ]
        for path, made in [
            *(("/api/v1/namespaces", each) for each in namespaces),
            *(("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each) for each in objects),
        ]:
            status, body = self._send("", "POST", path, json.dumps(made).encode(), {})
            if status != http.client.CREATED:
                raise RuntimeError(f"{made['kind']} {made['metadata']['name']} was refused: {body.decode()}")
        for made in objects:
            name = made["metadata"]["name"]
            wait = Case("prepare/wait", kubectl=f"wait --for=condition=Established crd/{name} --timeout=20s")
            if (lines := self.ask(wait))[0] != "exit 0":
                raise RuntimeError("\n".join(lines))

    def ask(self, case: Case) -> list[str]:
        """The answer, normalised."""
        deadline = time.monotonic() + _UNTIL_SECONDS
        while True:
            head, parsed, text = self._run(case) if case.kubectl else self._call(case)
            if not case.until or re.search(case.until, text) or time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)  # what happens later is announced nowhere
        for name, path in case.save.items():
            self._words[name] = text.strip() if path == "." else _at(parsed, path)
        return [*head, *self._body(case, parsed, text)]

    def _body(self, case: Case, parsed: Any, text: str) -> list[str]:
        if case.detail == "status":
            return []
        if parsed is None:
            return text_lines(self._hidden(text))
        lines = shape_lines if case.detail == "shape" else value_lines
        told = parsed if case.managed else _unmanaged(parsed)
        return lines(json.loads(self._hidden(json.dumps(told))), case.forget)

    def _hidden(self, text: str) -> str:
        """The text with saved words named instead of told; short ones could be anything."""
        for name, word in self._words.items():
            if len(word) >= _SHORTEST_WORD:
                text = text.replace(word, f"${name}")
        return text

    def _filled(self, text: str, group: str) -> str:
        return Template(text).safe_substitute(self._words, NS=f"drift-{group}")

    def _run(self, case: Case) -> tuple[list[str], Any, str]:
        arguments = [self._filled(quoted or plain, case.group) for quoted, plain in _ARGUMENT.findall(case.kubectl)]
        stdin = None
        if case.stdin is not None:
            objects = case.stdin if isinstance(case.stdin, list) else [case.stdin]
            stdin = self._filled("\n".join(json.dumps(each) for each in objects), case.group)
            arguments += ["-f", "-"]
        config = self._config(case.user, case.group)
        command = [self._kubectl, "--kubeconfig", config, *arguments]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=_KUBECTL_SECONDS)
        except subprocess.TimeoutExpired:
            return [f"did not end within {_KUBECTL_SECONDS:.0f} s"], None, ""
        head = [f"exit {done.returncode}"]
        if found := _REASON.search(done.stderr):
            head.append(f"reason {found[1]}")
        parsed = None
        if done.returncode == 0 and re.search(r"(^| )(-o ?|--output[= ])(json|yaml)($| )", case.kubectl):
            parsed = yaml.safe_load(done.stdout)
        return head, parsed, done.stdout + done.stderr

    def _call(self, case: Case) -> tuple[list[str], Any, str]:
        method, path = self._filled(case.call, case.group).split(" ", 1)
        content: bytes | None = None
        if case.raw is not None:
            content = self._filled(case.raw, case.group).encode()
        elif case.body is not None:
            content = self._filled(json.dumps(case.body), case.group).encode()
        headers = {name: self._filled(value, case.group) for name, value in case.headers.items()}
        status, body = self._send(case.user, method, path, content, headers)
        text = body.decode(errors="replace")
        head = [f"status {status}"]
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError:
            parsed = _events(text)
        if isinstance(parsed, dict) and parsed.get("kind") == "Status" and "reason" in parsed:
            head.append(f"reason {parsed['reason']}")
        return head, parsed, text

    def _send(
        self, user: str, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        address = urlsplit(self._api.url)
        anonymous = "Authorization" in headers
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=_CALL_SECONDS, context=self._context(user, anonymous)
        )
        usual = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "drift/1"}
        try:
            connection.request(method, path, content, {**usual, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _context(self, user: str, anonymous: bool) -> ssl.SSLContext:
        key = f"anonymous {anonymous} {user}"
        if key not in self._tls:
            document = yaml.safe_load(self._config(user, "").read_text())
            authority = base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"])
            context = ssl.create_default_context(cadata=authority.decode())
            if not anonymous:
                login = document["users"][0]["user"]
                pem = Path(self._folder.name) / "login.pem"
                pem.touch(mode=0o600)
                pem.write_bytes(
                    base64.b64decode(login["client-certificate-data"]) + base64.b64decode(login["client-key-data"])
                )
                context.load_cert_chain(pem)
                pem.unlink()
            self._tls[key] = context
        return self._tls[key]

    def _config(self, user: str, group: str) -> Path:
        """A kubeconfig in whose context the group's namespace is set."""
        if (user, group) not in self._configs:
            document = yaml.safe_load((self._api.kubeconfig_for(user) if user else self._api.kubeconfig).read_text())
            document["contexts"][0]["context"]["namespace"] = f"drift-{group}"
            path = Path(self._folder.name) / f"{user or 'admin'}-{group}.kubeconfig"
            path.touch(mode=0o600)
            path.write_text(yaml.safe_dump(document))
            self._configs[user, group] = path
        return self._configs[user, group]


def _unmanaged(value: Any) -> Any:
    """The value without managedFields, wherever they are."""
    if isinstance(value, dict):
        return {key: _unmanaged(item) for key, item in value.items() if key != "managedFields"}
    return [_unmanaged(item) for item in value] if isinstance(value, list) else value


def _events(text: str) -> list[Any] | None:
    """The lines of a watch; None when it is not one."""
    try:
        return [json.loads(line) for line in text.splitlines()] or None
    except json.JSONDecodeError:
        return None


def _at(value: Any, path: str) -> str:
    """What is at a dotted path; empty when there is nothing, which the comparison will show."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return ""
    return "" if value is None else str(value)
