"""Reads Secrets on use, caches them for seconds, never watches and never stores them.

Only a Secret that carries the label `tarsy.dev/credentials: "true"` is ever read by a run: the label is how a
namespace says which of its Secrets are meant for TARSy. Every problem is a sentence that names Secret and remedy, and
none holds a value.

While the API cannot be reached nobody can rotate or revoke a Secret either, so what was read last is used on, for a
limited time: an outage of the API server stops no run. What was never read is waited for.
"""

import asyncio
import base64
import binascii
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tarsy.kube.client import ApiError, KubeClient
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import SecretKey

LABEL = "tarsy.dev/credentials"
CACHE_SECONDS = 5.0
OUTAGE_SECONDS = 900.0
"""How long after it was read a Secret may be used while the API cannot be reached."""

PATIENCE_SECONDS = 3.0
"""How long the API may take to answer for a Secret that was read before, until that one is used."""

_WAIT_SECONDS = 30.0
"""How long one that was never read is asked for anew while the API cannot be reached."""

RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Known:
    """Holds a Secret's content, when it was read, and when it was last asked for (monotonic seconds)."""

    data: dict[str, str]
    read: float
    asked: float


_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)")
_ROLE = "tarsy-secret-reader"


def binding(namespace: str, refusal: str) -> str:
    """Returns the command that lets operator and workers read the Secrets of a namespace, as component `tenant` does.

    Args:
        namespace: where the Secrets are.
        refusal: of the Kubernetes API, which names who was refused.
    """
    refused = _ACCOUNT.search(refusal)
    home, own = refused.groups() if refused else ("tarsy-system", "tarsy-operator")
    names = dict.fromkeys((own, "tarsy-operator", "tarsy-worker"))
    accounts = " ".join(f"--serviceaccount={home}:{name}" for name in names)
    return f"`kubectl create rolebinding {_ROLE} -n {namespace} --clusterrole={_ROLE} {accounts}`"


class Secrets:
    """Reads keys of labelled Secrets.

    Args:
        clock: monotonic seconds.
        wait_seconds: see `WAIT_SECONDS`.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._known: dict[tuple[str, str], _Known] = {}

    async def __call__(self, key: SecretKey) -> str:
        """Returns the value of a key.

        Raises:
            SecretProblem: the Secret is missing, unlabelled, unreadable, or lacks the key.
            ApiError: the Kubernetes API cannot be reached.
        """
        data = await self._data(key.namespace, key.name)
        where = f"Secret {key.namespace}/{key.name}"
        if key.key not in data:
            raise SecretProblem("SecretKeyMissing", f"{where} has no key {key.key}; add it")
        try:
            value = base64.b64decode(data[key.key], validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            raise SecretProblem("SecretKeyInvalid", f"{where}: key {key.key} is not text") from None
        if not value:
            raise SecretProblem("SecretKeyMissing", f"{where}: key {key.key} is empty; fill it in")
        return value

    async def _data(self, namespace: str, name: str) -> dict[str, str]:
        now = self._clock()
        self._known = {k: v for k, v in self._known.items() if v.read + OUTAGE_SECONDS > now}
        known = self._known.get((namespace, name))
        if known is not None and known.asked + CACHE_SECONDS > now:
            return known.data
        try:
            known = await (self._learn(namespace, name) if known is None else self._renew(namespace, name, known))
        except SecretProblem:
            self._known.pop((namespace, name), None)
            raise
        self._known[namespace, name] = known
        return known.data

    async def _learn(self, namespace: str, name: str) -> _Known:
        """Reads a Secret that was never read, or too long ago; waits for an API that is away."""
        until = self._clock() + self._wait_seconds
        while True:
            asked = self._clock()
            try:
                return _Known(await self._fetch(namespace, name), asked, asked)
            except ApiError as error:
                if not error.transient or self._clock() + RETRY_SECONDS > until:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _renew(self, namespace: str, name: str, known: _Known) -> _Known:
        """Reads a Secret again; keeps the old content while the API is away."""
        asked = self._clock()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return _Known(await self._fetch(namespace, name), asked, asked)
        except TimeoutError:
            return replace(known, asked=asked)
        except ApiError as error:
            if not error.transient:
                raise
            return replace(known, asked=asked)

    async def _fetch(self, namespace: str, name: str) -> dict[str, str]:
        where = f"Secret {namespace}/{name}"
        try:
            secret = await self._client.find("Secret", namespace, name)
        except ApiError as error:
            if error.reason != "Forbidden":
                raise
            raise SecretProblem(
                "SecretForbidden",
                f"{where} may not be read by TARSy; let it read the labelled Secrets of namespace {namespace}: "
                f"{binding(namespace, error.message)}",
            ) from error
        if secret is None:
            raise SecretProblem("SecretMissing", f"{where} does not exist; create it")
        if (secret["metadata"].get("labels") or {}).get(LABEL) != "true":
            raise SecretProblem("SecretNotLabelled", f'{where} lacks the label {LABEL}: "true"; add it')
        data: dict[str, str] = secret.get("data") or {}
        return data
