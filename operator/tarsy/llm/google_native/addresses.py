"""Where Gemini is: its own API, or Vertex AI in a location.

Decision: the address of Vertex AI follows from the location and is not asked of people, so that a token of the pod's
own identity cannot be sent elsewhere. Global, multi-regional (`us`, `eu`) and regional endpoints are named differently.
"""

import re

from tarsy.plan.model import ProviderPlan

GEMINI = "https://generativelanguage.googleapis.com"
GEMINI_VERSION = "v1beta"
VERTEX_VERSION = "v1beta1"
_VERSION = re.compile(r"/(v\d+(?:alpha|beta)?\d*)/*\Z")


def address(provider: ProviderPlan) -> tuple[str, str]:
    """The address of a provider's API without its version, and the version."""
    usual = GEMINI_VERSION if provider.vertexai is None else VERTEX_VERSION
    base_url = provider.base_url or (GEMINI if provider.vertexai is None else of_location(provider.vertexai.location))
    version = _VERSION.search(base_url)
    return (base_url[: version.start()], version[1]) if version else (base_url, usual)


def of_location(location: str) -> str:
    """The address of Vertex AI in a location."""
    match location:
        case "global":
            return "https://aiplatform.googleapis.com"
        case "us" | "eu":
            return f"https://aiplatform.{location}.rep.googleapis.com"
        case _:
            return f"https://{location}-aiplatform.googleapis.com"
