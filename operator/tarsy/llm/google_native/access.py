"""Authorizes requests to Google: by API key, service account key, or this pod's own identity.

Decision: none of Google's own ways of finding credentials (environment, files, `gcloud`) is asked. A service account's
key signs the token by itself, so nothing is sent to the `token_uri` that the Secret's author wrote, and credential
files of other kinds are refused: they name files, addresses and commands that their author could not reach otherwise.
The pod's own identity (Workload Identity) pays for whoever uses it, so it is lent to the namespaces that the
administrator names, and goes to Google's own addresses only (a rule of LLMProvider).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import aiohttp
import orjson

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.model import ProviderPlan

METADATA = "http://169.254.169.254"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
_SECONDS = 5.0
_SPARE_SECONDS = 300.0  # a token leaves so long before its end
_BYTES = 1 << 16


class GoogleAccess:
    """The headers that let the requests of one provider in.

    Args:
        provider: whose requests.
        key: of its Secret: an API key, or a service account's key file; None where it needs none.
        lent_to: namespaces whose providers may use this pod's own identity.
        metadata: where the pod's identity is asked for.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        provider: ProviderPlan,
        key: str | None,
        *,
        lent_to: Collection[str] = (),
        metadata: str = METADATA,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = key.strip() if key else None
        self._own = provider.vertexai is not None and provider.vertexai.own_identity
        self._account = provider.vertexai is not None and (self._key or "").startswith("{")
        self._namespace = provider.ref.namespace
        self._lent = self._namespace in lent_to
        self._metadata = metadata
        self._clock = clock
        self._asking = asyncio.Lock()
        self._token = ""
        self._until = 0.0

    @property
    def secret(self) -> str | None:
        """The key or token that was sent last; must not appear in any text."""
        return self._token or self._key

    async def headers(self) -> dict[str, str]:
        """Returns the headers of the next request.

        Raises:
            ModelError: CREDENTIALS_MISSING, there is no token.
        """
        if not (self._own or self._account):
            return {"x-goog-api-key": self._key} if self._key else {}
        async with self._asking:
            if self._clock() >= self._until:
                token, seconds = await (self._of_pod() if self._own else asyncio.to_thread(_signed, self._key or ""))
                self._token, self._until = token, self._clock() + seconds - _SPARE_SECONDS
        return {"authorization": f"Bearer {self._token}"}

    async def _of_pod(self) -> tuple[str, float]:
        if not self._lent:
            raise _missing(
                f"namespace {self._namespace} may not use this pod's Google identity: name a Secret in "
                f"spec.apiKeySecretRef, or run the operator with --workload-identity-for {self._namespace}"
            )
        try:
            async with asyncio.timeout(_SECONDS), aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
                url, headers = f"{self._metadata}{_TOKEN}", {"Metadata-Flavor": "Google"}
                async with session.get(url, headers=headers, allow_redirects=False) as response:
                    status, content = response.status, await response.content.read(_BYTES)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _missing(
                f"the metadata server of this pod's Google identity does not respond ({type(error).__name__}): "
                "Workload Identity works on Google's clusters only; elsewhere, name a Secret in spec.apiKeySecretRef",
                retryable=True,
            ) from None
        if status != 200:
            raise _missing(
                f"the metadata server answered {status} for this pod's Google identity: bind its Kubernetes "
                "ServiceAccount to one that may use Vertex AI (Workload Identity)",
                retryable=status >= 500 or status == 429,
            )
        try:
            told = orjson.loads(content)
            return str(told["access_token"]), float(told["expires_in"])
        except (ValueError, KeyError, TypeError):
            raise _missing("the metadata server's answer for this pod's Google identity is not a token") from None


def _signed(key: str) -> tuple[str, float]:
    """A token that a service account's key file signs, and for how many seconds it holds."""
    from google.auth.exceptions import GoogleAuthError
    from google.auth.jwt import Credentials

    try:
        info = orjson.loads(key)
    except ValueError:
        info = None
    if not isinstance(info, Mapping) or info.get("type") != "service_account":
        raise _missing(
            "the Secret's value is neither a key file of a service account (type service_account) nor an API key"
        )
    try:
        signed: Any = Credentials
        credentials = signed.from_service_account_info(info, audience=None, additional_claims={"scope": SCOPE})
        credentials.refresh(None)
        return credentials.token.decode(), 3600.0
    except (GoogleAuthError, ValueError, TypeError, KeyError):
        raise _missing("the Secret's service account key cannot be used: the key file is damaged") from None


def _missing(text: str, *, retryable: bool = False) -> ModelError:
    return ModelError(ModelErrorCode.CREDENTIALS_MISSING, text, retryable=retryable)
