"""Sends the requests of a probe and judges their responses.

Decision: a server's words are handed on only from the vendor's own address: the author of an LLMProvider chooses
`baseURL`, and a status must not become a way to read from addresses that the author cannot reach.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from yarl import URL

from tarsy.llm.error_responses import clean_message, of_status, remedy, words_of, words_of_text
from tarsy.llm.protocol import ModelErrorCode
from tarsy.llm.reach import ModelServer
from tarsy.plan.model import ProviderPlan

_BYTES = 1 << 20
_NO_SUCH_PATH = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class Probed:
    """The result of a probe.

    Args:
        reason: The condition's reason; None when the provider can be used.
        message: The error, or with no reason the part that was not checked.
    """

    reason: str | None = None
    message: str = ""


NOT_LISTED = Probed(message="the server does not list its models, so the model's name is not checked.")


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A provider that is probed, over a session that connects to its server only.

    Args:
        session: Sends the requests.
        provider: The model, its server and its settings.
        server: The server.
        key: The API key, None for servers that need none.
        lent_to: Namespaces whose providers may use this pod's own identity with Google.
    """

    session: aiohttp.ClientSession
    provider: ProviderPlan
    server: ModelServer
    key: str | None
    lent_to: Collection[str]


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """A server's response: its status, its JSON (None: it is none), and the beginning of its text."""

    status: int
    body: Any
    text: str

    @property
    def no_such_path(self) -> bool:
        """Whether the server has no such path, or no such method of it."""
        return self.status in _NO_SUCH_PATH


async def ask_for_model(target: ProbeTarget, path: str, headers: dict[str, str]) -> Probed:
    """Asks for the description of the model, or for the list of models where a compatible server has none.

    Args:
        target: the provider.
        path: path of the list of models; the model's own is below it.
        headers: authorize the requests.
    """
    listing = URL(target.server.url).with_path(path, encoded=True, keep_query=True)
    model, own = target.provider.model, target.server.makers
    found = await fetch(target, listing.joinpath(model), headers)
    if found.no_such_path and not own:
        found = await fetch(target, listing, headers)
        known = _listed(found.body) if found.status == 200 else None
        if known is not None and not known & {model, f"models/{model}", f"{model}:latest"}:
            text = f"the server's list of models does not contain {model}; check spec.model"
            return Probed(ModelErrorCode.NOT_FOUND.value, text)
        if found.no_such_path or (found.status == 200 and known is None):
            return NOT_LISTED
    return judge_response(target, found, target.key)


def judge_response(target: ProbeTarget, found: ProbeResponse, secret: str | None) -> Probed:
    """Returns what a response means for the provider.

    Args:
        target: the provider.
        found: the response.
        secret: the key or token that was sent, which is taken out of the message.
    """
    own = target.server.makers
    if found.status == 200:
        return Probed()
    error = found.body.get("error", found.body) if isinstance(found.body, Mapping) else {}
    words = clean_message(words_of(error) or words_of_text(found.text), secret)
    if found.status == 403 and "api.model.read" in words:
        return Probed(message="the key may not read models, so the model's name is not checked.")
    if found.status == 429:
        return Probed(message="the server is at its rate limit, so key and model are not checked.")
    code, _ = of_status(found.status, error, words)
    if "API_KEY_INVALID" in found.text or "API key not valid" in words:
        code = ModelErrorCode.CREDENTIALS
    said = f": {words}" if own and words else ""
    return Probed(code.value, f"the server answered {found.status}{remedy(code, found.status, own)}{said}")


async def fetch(target: ProbeTarget, url: URL, headers: dict[str, str], body: Any = None) -> ProbeResponse:
    """Sends a GET, or a POST where there is a body.

    Args:
        target: the provider.
        url: on its server.
        headers: authorize the request.
        body: sent as JSON.
    """
    method = "GET" if body is None else "POST"
    async with target.session.request(method, url, headers=headers, json=body, allow_redirects=False) as response:
        content = bytearray()
        async for block in response.content.iter_any():
            content += block
            if len(content) > _BYTES:
                break
        try:
            body = orjson.loads(content)
        except ValueError:
            body = None
        return ProbeResponse(response.status, body, bytes(content[:4096]).decode(errors="replace"))


def bearer_headers(key: str | None) -> dict[str, str]:
    """Returns the headers of APIs that take the key as a bearer token."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def _listed(body: Any) -> set[str] | None:
    """The names in a list of models; None when it is none."""
    items = body.get("data", body.get("models")) if isinstance(body, Mapping) else None
    if not isinstance(items, list) or not items:
        return None
    return {str(item.get("id", item.get("name"))) for item in items if isinstance(item, Mapping)}
