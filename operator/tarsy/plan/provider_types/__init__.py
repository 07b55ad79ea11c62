"""Describes the types of LLMProvider (`spec.type`): one file a type, and one line of `_TYPES` each.

A new type needs its name in the CRD (`ProviderTypeName`), a `ProviderType` in a file here, a `ProviderSpec` with its
client in a file of `tarsy.llm.providers`, one line in each of the two lists, and its name among the values of the
metrics' label `provider_type`. `tests/unit/plan/test_provider_types.py` names the place that was forgotten.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tarsy.plan.provider_types.anthropic import ANTHROPIC
from tarsy.plan.provider_types.google import GOOGLE
from tarsy.plan.provider_types.openai import OPENAI
from tarsy.plan.provider_types.record import ProviderType
from tarsy.plan.provider_types.vertexai import VERTEXAI
from tarsy.plan.provider_types.xai import XAI

_TYPES = (OPENAI, GOOGLE, VERTEXAI, ANTHROPIC, XAI)

PROVIDER_TYPES: Final[Mapping[str, ProviderType]] = MappingProxyType({type.name: type for type in _TYPES})


class UnsupportedProviderType(ValueError):
    """A `spec.type` that this version does not support; the message names the field and the supported types."""

    def __init__(self, name: str) -> None:
        known = [f"{type.name!r} ({type.models})" for type in _TYPES]
        super().__init__(f"spec.type {name!r} is not supported; use {', '.join(known[:-1])} or {known[-1]}")


def provider_type(name: str) -> ProviderType:
    """Returns the record of a `spec.type`.

    Raises:
        UnsupportedProviderType: this version does not support it, for example in a plan of a newer one.
    """
    if (found := PROVIDER_TYPES.get(name)) is None:
        raise UnsupportedProviderType(name)
    return found
