"""Calls mutating and validating webhooks in the order of their names.

kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers; Services are reached as in
`http/proxy.py`: by external name, or on 127.0.0.1.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Iterator
from typing import Any, Literal

import aiohttp
import orjson

from embedded_kubeapi.admission.chain import Review
from embedded_kubeapi.admission.expressions import MUTATING, VALIDATING
from embedded_kubeapi.admission.matching import EXEMPT_FROM_WEBHOOKS, concerns, request_of, scope_of, unmet
from embedded_kubeapi.call import Authorizer
from embedded_kubeapi.cel import CEL_ERRORS
from embedded_kubeapi.cel.budget import PER_OBJECT, CostBudget
from embedded_kubeapi.errors import ApiError
from embedded_kubeapi.objects import Key, Obj, dumps
from embedded_kubeapi.patch.jsonpatch import PatchError, json_patch
from embedded_kubeapi.store import Store

_DEFAULT_SECONDS = 10
_BAD_REQUEST = 400


class Webhooks:
    """Calls the webhooks in the store."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self._session: aiohttp.ClientSession | None = None

    async def mutate(self, review: Review) -> Obj | None:
        """Returns the object as changed by the mutating webhooks.

        Raises:
            ApiError: one denies it, or cannot be asked.
        """
        obj = review.obj
        for webhook in self._webhooks(MUTATING):
            current = Review(review.call, review.operation, review.resource, review.namespace, review.name, obj,
                             review.old, review.subresource, review.options)  # fmt: skip
            answer = await self._ask(webhook, current)
            if answer is not None and answer.get("patch") and obj is not None:
                try:
                    obj = json_patch(obj, orjson.loads(base64.b64decode(answer["patch"])))
                except (PatchError, binascii.Error, orjson.JSONDecodeError) as error:
                    raise _broken(webhook, f"its patch does not fit: {error}") from None
        return obj

    async def validate(self, review: Review) -> None:
        """Calls the validating webhooks.

        Raises:
            ApiError: one denies it, or cannot be asked.
        """
        if review.operation == "DELETE":
            for webhook in self._webhooks(MUTATING):
                await self._ask(webhook, review)
        for webhook in self._webhooks(VALIDATING):
            await self._ask(webhook, review)

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    def _webhooks(self, key: Key) -> Iterator[Obj]:
        for configuration in self._store.objects(key):
            yield from configuration.get("webhooks") or ()

    async def _ask(self, webhook: Obj, review: Review) -> Obj | None:
        """Returns the response of a webhook that allows the write; None if not called, or if its failure is ignored."""
        if review.resource.key in EXEMPT_FROM_WEBHOOKS or not concerns(
            review, webhook.get("rules") or [], webhook, self._store
        ):
            return None
        try:
            conditions = webhook.get("matchConditions")
            scope = scope_of(review, self._store, self._authorizer) if conditions else {}
            if conditions and unmet(conditions, scope, CostBudget(PER_OBJECT)):
                return None
            request = {**request_of(review), "object": review.obj, "oldObject": review.old}
            answer = await self._post(webhook, request)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, *CEL_ERRORS) as error:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return None
            raise _broken(webhook, f"failed to call webhook: {type(error).__name__}: {error}") from None
        for warning in answer.get("warnings") or ():
            review.call.warn(str(warning))
        if not answer.get("allowed"):
            raise _denied(webhook["name"], answer.get("status") or {})
        return answer

    async def _post(self, webhook: Obj, request: Obj) -> Obj:
        config = webhook["clientConfig"]
        url, name = self._address(config)
        context: ssl.SSLContext | Literal[True] = True
        if config.get("caBundle"):
            context = ssl.create_default_context(cadata=base64.b64decode(config["caBundle"]).decode())
        if self._session is None:
            self._session = aiohttp.ClientSession()
        body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        async with self._session.post(
            url,
            data=dumps(body),
            headers={"Content-Type": "application/json"},
            ssl=context,
            server_hostname=name,
            timeout=aiohttp.ClientTimeout(total=webhook.get("timeoutSeconds") or _DEFAULT_SECONDS),
        ) as response:
            if response.status >= _BAD_REQUEST:
                raise ValueError(f"it answered {response.status}")
            answer: Any = orjson.loads(await response.read())
        found = answer.get("response") if isinstance(answer, dict) else None
        if not isinstance(found, dict) or found.get("uid") != request["uid"]:
            raise ValueError("its answer is no AdmissionReview with a response of the same uid")
        return found

    def _address(self, config: Obj) -> tuple[str, str | None]:
        if url := config.get("url"):
            return str(url), None
        service = config["service"]
        found = self._store.get(("", "services"), service["namespace"], service["name"])
        if found is None:
            raise ValueError(f'service "{service["name"]}" not found')
        host = found["spec"].get("externalName") or "127.0.0.1"
        path = "/" + str(service.get("path") or "").lstrip("/")
        return f"https://{host}:{service.get('port') or 443}{path}", f"{service['name']}.{service['namespace']}.svc"


def _broken(webhook: Obj, why: str) -> ApiError:
    return ApiError(500, "InternalError", f'Internal error occurred: failed calling webhook "{webhook["name"]}": {why}')


def _denied(name: str, status: Obj) -> ApiError:
    told = status.get("message") or status.get("reason")
    text = f'admission webhook "{name}" denied the request' + (f": {told}" if told else " without explanation")
    code = max(int(status.get("code") or 0), _BAD_REQUEST)
    return ApiError(code, str(status.get("reason") or ""), text, status.get("details"))
