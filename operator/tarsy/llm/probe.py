"""Asks a provider whether it knows its key and its model, without spending a token.

One small GET of the model's own description, the same for every client, so no SDK is needed; Vertex AI is asked to
count the tokens of a dot, which is free and needs the right that a call needs. Decision: what a server
says in words is handed on only from the maker's own address: whoever writes an LLMProvider chooses `baseURL`, and a
status must not become a way to read what stands behind addresses that its author cannot reach (DESIGN section 7).
A server that cannot be asked this way (many compatible ones have no `/models`) is taken as usable, and that is said.
"""

import asyncio
import re
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from yarl import URL

from tarsy.llm import extras
from tarsy.llm.failures import causes, unreachable, where_to_look
from tarsy.llm.google_native import provider as google_native
from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import address as google_address
from tarsy.llm.google_native.addresses import makers as google_makers
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.reach import ADDRESS_NOT_ALLOWED, ADDRESSES, ANYWHERE, ModelServer, server_of
from tarsy.llm.refusal import clean_message, of_status, remedy, words_of, words_of_text
from tarsy.outbound.address_check import NotAllowed
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import Backend, ProviderPlan

PACKAGE_MISSING = "PackageMissing"
_SECONDS = 10.0
_BYTES = 1 << 20
_VERSION = re.compile(r"/v\d+(?:alpha|beta)?\d*\Z")
_NO_SUCH_PATH = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of it: `reason` is None when the provider can be used, and `message` then what was not checked."""

    reason: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Any
    text: str


async def probe(
    provider: ProviderPlan,
    key: str | None,
    *,
    lent_to: Collection[str] = (),
    destinations: Destinations = ANYWHERE,
    seconds: float = _SECONDS,
    addresses: Mapping[str, str] = ADDRESSES,
) -> Probed:
    """Whether the provider can be used as it stands.

    Args:
        provider: the model, its server and its settings.
        key: the API key, None for servers that need none.
        lent_to: namespaces whose providers may use this pod's own identity with Google.
        destinations: where URLs may lead.
        seconds: for all of it.
        addresses: where the maker of each type has its API.
    """
    missing = (
        google_native.missing_google_settings()
        if provider.backend is Backend.GOOGLE_NATIVE
        else extras.missing_extra(provider)
    )
    if missing is not None:
        return Probed(PACKAGE_MISSING, missing)
    if provider.type not in addresses and provider.vertexai is None:
        return Probed(message=f"type {provider.type} cannot be asked for a model without a call.")
    place = where_to_look(provider.base_url is not None)
    try:
        makers = google_makers(provider) if provider.vertexai is not None else addresses[provider.type]
        server = server_of(provider, makers, destinations)
        async with asyncio.timeout(seconds), _session(server) as session:
            if provider.vertexai is not None:
                return await _ask_vertex(session, provider, server, GoogleAccess(provider, key, lent_to=lent_to))
            return await _ask(session, provider, server, key)
    except ModelError as error:
        return Probed(error.code.value, error.message)
    except NotAllowed as error:
        return Probed(
            ModelErrorCode.INVALID_REQUEST.value, f"provider {provider.ref.name}: {ADDRESS_NOT_ALLOWED}{error}"
        )
    except TimeoutError:
        return Probed(ModelErrorCode.CONNECTION.value, f"no answer from the server within {seconds:g} s{place}")
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError):
        return Probed(ModelErrorCode.INVALID_REQUEST.value, "spec.baseURL is not a usable http(s) URL")
    except (aiohttp.ClientError, OSError) as error:
        return Probed(ModelErrorCode.CONNECTION.value, f"{_unreachable(error)}{place}")


async def _ask(session: aiohttp.ClientSession, provider: ProviderPlan, server: ModelServer, key: str | None) -> Probed:
    listing, headers = _where(provider, key, URL(server.url))
    own = server.makers
    found = await _get(session, listing.joinpath(provider.model), headers)
    if found.status in _NO_SUCH_PATH and not own:
        found = await _get(session, listing, headers)
        known = _listed(found.body) if found.status == 200 else None
        if known is not None and not known & {provider.model, f"models/{provider.model}", f"{provider.model}:latest"}:
            text = f"the server's list of models has no {provider.model}; check spec.model"
            return Probed(ModelErrorCode.NOT_FOUND.value, text)
        if found.status in _NO_SUCH_PATH or (found.status == 200 and known is None):
            return Probed(message="the server cannot be asked for its models, so the model's name is not checked.")
    return _judged(found, own, key)


async def _ask_vertex(
    session: aiohttp.ClientSession, provider: ProviderPlan, server: ModelServer, access: GoogleAccess
) -> Probed:
    """Asks for the tokens of a dot; a model named with its publisher's or project's path is taken as it is."""
    own, vertex = server.makers, provider.vertexai
    if vertex is None or "/" in provider.model:
        return Probed(message="a model with a path cannot be asked for without a call.")
    base, version = google_address(provider, server.url)
    place = f"projects/{vertex.project}/locations/{vertex.location}/publishers/google/models/{provider.model}"
    url = URL(f"{base.rstrip('/')}/{version}/{place}:countTokens")
    found = await _get(session, url, await access.headers(), {"contents": [{"role": "user", "parts": [{"text": "."}]}]})
    if found.status in _NO_SUCH_PATH and not own:
        return Probed(message="the server cannot be asked for its models, so the model's name is not checked.")
    return _judged(found, own, access.secret)


def _judged(found: _Answer, own: bool, key: str | None) -> Probed:
    if found.status == 200:
        return Probed()
    error = found.body.get("error", found.body) if isinstance(found.body, Mapping) else {}
    words = clean_message(words_of(error) or words_of_text(found.text), key)
    if found.status == 403 and "api.model.read" in words:
        return Probed(message="the key may not read models, so the model's name is not checked.")
    if found.status == 429:
        return Probed(message="the server is at its rate limit, so key and model are not checked.")
    code, _ = of_status(found.status, error, words)
    if "API_KEY_INVALID" in found.text or "API key not valid" in words:
        code = ModelErrorCode.CREDENTIALS
    said = f": {words}" if own and words else ""
    return Probed(code.value, f"the server answered {found.status}{remedy(code, found.status, own)}{said}")


def _where(provider: ProviderPlan, key: str | None, url: URL) -> tuple[URL, dict[str, str]]:
    """Where the API lists its models, and the headers it wants."""
    path = url.raw_path.rstrip("/")
    match provider.type:
        case "google":
            headers = {"x-goog-api-key": key} if key else {}
            path = path if _VERSION.search(path) else f"{path}/v1beta"
        case "anthropic":
            headers = {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
            path = f"{path.removesuffix('/v1')}/v1"
        case _:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
    return url.with_path(f"{path}/models", encoded=True, keep_query=True), headers


async def _get(session: aiohttp.ClientSession, url: URL, headers: dict[str, str], body: Any = None) -> _Answer:
    """Asks, by a POST where there is a body."""
    method = "GET" if body is None else "POST"
    async with session.request(method, url, headers=headers, json=body, allow_redirects=False) as response:
        content = bytearray()
        async for block in response.content.iter_any():
            content += block
            if len(content) > _BYTES:
                break
        try:
            body = orjson.loads(content)
        except ValueError:
            body = None
        return _Answer(response.status, body, bytes(content[:4096]).decode(errors="replace"))


def _session(server: ModelServer) -> aiohttp.ClientSession:
    """Nothing of the environment, no cookies, one connection that is not kept."""
    return aiohttp.ClientSession(
        connector=PinnedConnector(server.host, server.judge, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept": "application/json", "User-Agent": "tarsy"},
    )


def _listed(body: Any) -> set[str] | None:
    """The names in a list of models; None when it is none."""
    items = body.get("data", body.get("models")) if isinstance(body, Mapping) else None
    if not isinstance(items, list) or not items:
        return None
    return {str(item.get("id", item.get("name"))) for item in items if isinstance(item, Mapping)}


def _unreachable(error: BaseException) -> str:
    found = list(causes(error))
    known = unreachable(found)
    if isinstance(found[-1], socket.gaierror):
        return f"{known[0] if known else 'no answer'}: {found[-1].strerror}"
    return known[0] if known else f"no answer from the server ({type(found[-1]).__name__})"
