"""Lists the clients of all provider types: one file a type, and one line of `_SPECS` each.

`tarsy.plan.provider_types` states what a new type needs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tarsy.llm.providers.anthropic import ANTHROPIC_SPEC
from tarsy.llm.providers.google import GOOGLE_SPEC
from tarsy.llm.providers.openai import OPENAI_SPEC
from tarsy.llm.providers.spec import ProviderSpec
from tarsy.llm.providers.vertexai import VERTEXAI_SPEC
from tarsy.llm.providers.xai import XAI_SPEC
from tarsy.plan.provider_types import UnsupportedProviderType

_SPECS = (OPENAI_SPEC, GOOGLE_SPEC, VERTEXAI_SPEC, ANTHROPIC_SPEC, XAI_SPEC)

PROVIDER_SPECS: Final[Mapping[str, ProviderSpec]] = MappingProxyType({spec.type.name: spec for spec in _SPECS})


def provider_spec(name: str) -> ProviderSpec:
    """Returns the clients of a `spec.type`.

    Raises:
        UnsupportedProviderType: this version does not support it.
    """
    if (found := PROVIDER_SPECS.get(name)) is None:
        raise UnsupportedProviderType(name)
    return found


def gen_ai_provider_name(name: str) -> str:
    """Returns the `gen_ai.provider.name` of a `spec.type`; the type itself where this version does not know it."""
    return PROVIDER_SPECS[name].gen_ai_name if name in PROVIDER_SPECS else name
