"""Asks a provider whether it accepts its key and its model, without spending a token.

One small GET of the model's own description, so no SDK is needed; Vertex AI is asked to count the tokens of a dot,
which is free and needs the right that a call needs. A server that cannot be asked this way (many compatible ones have
no `/models`) counts as usable, and the message states what was not checked.
"""

import asyncio
import socket
from collections.abc import Collection, Mapping
from types import MappingProxyType

import aiohttp

from tarsy.llm.call_errors import causes, unreachable, where_to_look
from tarsy.llm.probe_requests import Probed, ProbeTarget
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.providers import provider_spec
from tarsy.llm.reach import ADDRESS_NOT_ALLOWED, ANYWHERE, ModelServer, server_of
from tarsy.outbound.address_check import NotAllowed
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types import UnsupportedProviderType

PACKAGE_MISSING = "PackageMissing"
_SECONDS = 10.0


async def probe(
    provider: ProviderPlan,
    key: str | None,
    *,
    lent_to: Collection[str] = (),
    destinations: Destinations = ANYWHERE,
    seconds: float = _SECONDS,
    addresses: Mapping[str, str] = MappingProxyType({}),
) -> Probed:
    """Checks whether the provider can be used.

    Args:
        provider: the model, its server and its settings.
        key: the API key, None for servers that need none.
        lent_to: namespaces whose providers may use this pod's own identity with Google.
        destinations: where URLs may lead.
        seconds: for all of it.
        addresses: of the vendors' APIs by type, instead of the real ones.
    """
    try:
        spec = provider_spec(provider.type)
    except UnsupportedProviderType as error:
        return Probed(ModelErrorCode.INVALID_REQUEST.value, str(error))
    client = spec.clients.get(provider.backend)
    if client is not None and client.package is not None and (missing := client.package.missing()) is not None:
        return Probed(PACKAGE_MISSING, missing)
    place = where_to_look(provider.base_url is not None)
    try:
        server = server_of(provider, addresses.get(provider.type) or spec.address(provider), destinations)
        async with asyncio.timeout(seconds), _session(server) as session:
            return await spec.probe(ProbeTarget(session, provider, server, key, lent_to))
    except ModelError as error:
        return Probed(error.code.value, error.message)
    except NotAllowed as error:
        return Probed(
            ModelErrorCode.INVALID_REQUEST.value, f"provider {provider.ref.name}: {ADDRESS_NOT_ALLOWED}{error}"
        )
    except TimeoutError:
        return Probed(ModelErrorCode.CONNECTION.value, f"no response from the server within {seconds:g} s{place}")
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError):
        return Probed(ModelErrorCode.INVALID_REQUEST.value, "spec.baseURL is not a usable http(s) URL")
    except (aiohttp.ClientError, OSError) as error:
        return Probed(ModelErrorCode.CONNECTION.value, f"{_unreachable(error)}{place}")


def _session(server: ModelServer) -> aiohttp.ClientSession:
    """Nothing of the environment, no cookies, one connection that is not kept."""
    return aiohttp.ClientSession(
        connector=PinnedConnector(server.host, server.judge, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept": "application/json", "User-Agent": "tarsy"},
    )


def _unreachable(error: BaseException) -> str:
    found = list(causes(error))
    known = unreachable(found)
    if isinstance(found[-1], socket.gaierror):
        return f"{known[0] if known else 'no response'}: {found[-1].strerror}"
    return known[0] if known else f"no response from the server ({type(found[-1]).__name__})"
