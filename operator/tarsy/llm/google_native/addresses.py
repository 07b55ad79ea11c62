"""Resolves the address of Gemini's API: its own, or Vertex AI in a location.

Decision: the address of Vertex AI follows from the location and is not asked of people, so that a token of the pod's
own identity cannot be sent elsewhere. Global, multi-regional (`us`, `eu`) and regional endpoints are named differently.
"""

import re

from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types.google import GOOGLE_URL

GEMINI_VERSION = "v1beta"
VERTEX_VERSION = "v1beta1"
_VERSION = re.compile(r"/(v\d+(?:alpha|beta)?\d*)/*\Z")


def makers(provider: ProviderPlan) -> str:
    """The address of Google's API for a provider, whatever its own is."""
    return GOOGLE_URL if provider.vertexai is None else of_location(provider.vertexai.location)


def address(provider: ProviderPlan, url: str) -> tuple[str, str]:
    """The address of a provider's API without its version, and the version.

    Args:
        provider: the model, its server and its settings.
        url: of its server.
    """
    usual = GEMINI_VERSION if provider.vertexai is None else VERTEX_VERSION
    version = _VERSION.search(url)
    return (url[: version.start()], version[1]) if version else (url, usual)


def of_location(location: str) -> str:
    """The address of Vertex AI in a location."""
    match location:
        case "global":
            return "https://aiplatform.googleapis.com"
        case "us" | "eu":
            return f"https://aiplatform.{location}.rep.googleapis.com"
        case _:
            return f"https://{location}-aiplatform.googleapis.com"
