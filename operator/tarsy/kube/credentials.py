"""Secrets: fetched on use, cached for seconds, never watched, never stored (DESIGN section 3).

Only a Secret that carries the label `tarsy.dev/credentials: "true"` is ever read by a run: the label is how a
namespace says which of its Secrets are meant for TARSy. Every problem is a sentence that names Secret and remedy, and
none holds a value.
"""

import base64
import binascii
import time
from collections.abc import Callable

from tarsy.kube.client import ApiError, KubeClient
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import SecretKey

LABEL = "tarsy.dev/credentials"
CACHE_SECONDS = 5.0


class Secrets:
    """Reads keys of labelled Secrets."""

    def __init__(self, client: KubeClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._cache: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}

    async def __call__(self, key: SecretKey) -> str:
        """The value of a key.

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
        cached = self._cache.get((namespace, name))
        if cached and cached[0] > now:
            return cached[1]
        where = f"Secret {namespace}/{name}"
        try:
            secret = await self._client.find("Secret", namespace, name)
        except ApiError as error:
            if error.reason != "Forbidden":
                raise
            raise SecretProblem(
                "SecretForbidden",
                f"{where} may not be read by TARSy; bind its Secret role in namespace {namespace} (component `tenant`)",
            ) from error
        if secret is None:
            raise SecretProblem("SecretMissing", f"{where} does not exist; create it")
        if (secret["metadata"].get("labels") or {}).get(LABEL) != "true":
            raise SecretProblem("SecretNotLabelled", f'{where} lacks the label {LABEL}: "true"; add it')
        data: dict[str, str] = secret.get("data") or {}
        self._cache = {k: v for k, v in self._cache.items() if v[0] > now}
        self._cache[namespace, name] = (now + CACHE_SECONDS, data)
        return data
