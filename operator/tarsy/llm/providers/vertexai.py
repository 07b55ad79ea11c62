"""Connects type `vertexai` by the clients of type `google`, with its own addresses and access."""

from typing import Final

from yarl import URL

from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import address, makers
from tarsy.llm.probe_requests import NOT_LISTED, Probed, ProbeTarget, fetch, judge_response
from tarsy.llm.providers.google import GOOGLE_CLIENTS
from tarsy.llm.providers.spec import ProviderSpec
from tarsy.plan.provider_types.vertexai import VERTEXAI


async def _probe(target: ProbeTarget) -> Probed:
    """Counts the tokens of a dot; a model that is named with its publisher's or project's path is not checked."""
    provider = target.provider
    vertex = provider.vertexai
    if vertex is None or "/" in provider.model:
        return Probed(message="a model with a path cannot be checked without a call.")
    access = GoogleAccess(provider, target.key, lent_to=target.lent_to)
    base, version = address(provider, target.server.url)
    place = f"projects/{vertex.project}/locations/{vertex.location}/publishers/google/models/{provider.model}"
    url = URL(f"{base.rstrip('/')}/{version}/{place}:countTokens")
    body = {"contents": [{"role": "user", "parts": [{"text": "."}]}]}
    found = await fetch(target, url, await access.headers(), body)
    if found.no_such_path and not target.server.makers:
        return NOT_LISTED
    return judge_response(target, found, access.secret)


VERTEXAI_SPEC: Final = ProviderSpec(
    type=VERTEXAI, gen_ai_name="gcp.vertex_ai", address=makers, clients=GOOGLE_CLIENTS, probe=_probe
)
