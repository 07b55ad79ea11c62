"""Defines the record of a provider type: what a plan must know of `spec.type`.

Decision: all knowledge about a type stands in its own record, and code asks the record, not the type's name. What its
client needs (package, address, request) stands beside the client, in `tarsy.llm.providers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tarsy.plan.model import Backend
from tarsy.resources.v1alpha1.llm_provider import ProviderTypeName

FlatPrice = tuple[float, float, float]
"""US dollars per million tokens: input, cached input, output."""
TieredPrice = tuple[float, float, float, int, float, float, float]
"""A `FlatPrice`, then the number of input tokens above which the whole call costs the three prices that follow."""


def _never(model: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderType:
    """One type of LLMProvider.

    Args:
        name: The value of `spec.type`.
        models: The models behind it, for people.
        base_url: Address of the vendor's API; None if it depends on the provider's spec.
        backends: Backend families that its models can be used with.
        default_client: Client for strategies of the langchain family, unless `spec.backend` names one.
        thinking_measures: Returns the fields of `spec.thinking` that a model accepts.
        list_prices: The vendor's prices by model name (`tarsy.plan.rates`).
        stop_sequences: Whether its API accepts stop sequences (`tarsy.llm.stop_reasons`).
        combines_tools: Whether a model takes native tools and function tools in one request.
        cache_marks: Whether its API keeps only marked beginnings of requests in its prompt cache.
        combining_type: Type with the same models whose API combines them, where this one's cannot.
    """

    name: ProviderTypeName
    models: str
    base_url: str | None
    backends: frozenset[Backend]
    default_client: Backend
    thinking_measures: Callable[[str], tuple[str, ...]]
    list_prices: Mapping[str, FlatPrice | TieredPrice] = field(default_factory=dict)
    stop_sequences: bool = True
    combines_tools: Callable[[str], bool] = _never
    combining_type: ProviderTypeName | None = None
    cache_marks: bool = False

    @property
    def has_native_tools(self) -> bool:
        """Whether its API offers tools of its own, which need the google-native backend."""
        return Backend.GOOGLE_NATIVE in self.backends


def effort_only(model: str) -> tuple[str, ...]:
    """Returns the thinking measures of APIs that accept only an effort."""
    return ("effort",)
