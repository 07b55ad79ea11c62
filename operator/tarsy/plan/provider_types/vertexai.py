"""Describes type `vertexai`: Gemini on Google Cloud.

Its prices depend on the region, so none are listed. Its API has no field for native tools beside function tools.
"""

from typing import Final

from tarsy.plan.model import Backend
from tarsy.plan.provider_types.google import gemini_measures
from tarsy.plan.provider_types.record import ProviderType

VERTEXAI: Final = ProviderType(
    name="vertexai",
    models="Gemini on Google Cloud",
    base_url=None,
    backends=frozenset({Backend.GOOGLE_NATIVE, Backend.LANGCHAIN}),
    default_client=Backend.GOOGLE_NATIVE,
    thinking_measures=gemini_measures,
    combining_type="google",
)
