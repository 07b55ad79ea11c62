"""Defines the record of a provider type in this room: its clients, its probe, its name in traces."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from tarsy.llm.extras import OptionalPackage
from tarsy.llm.langchain import ChatSpec, LangChainProvider
from tarsy.llm.probe_requests import Probed, ProbeTarget
from tarsy.llm.protocol import LLMClient
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import Backend, ProviderPlan
from tarsy.plan.provider_types.record import ProviderType


class ClientFactory(Protocol):
    """Builds a client."""

    def __call__(
        self, provider: ProviderPlan, key: str | None, /, *, lent_to: Collection[str], destinations: Destinations
    ) -> LLMClient:
        """Builds the client of a provider, without retries.

        Args:
            provider: the model, its server and its settings.
            key: the API key, None for servers that need none.
            lent_to: namespaces whose providers may use this pod's own identity with Google.
            destinations: where URLs may lead.

        Raises:
            ModelError: INVALID_REQUEST: the server's address is not allowed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """One client of a type: how it is built, and the optional package that it needs."""

    build: ClientFactory
    package: OptionalPackage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """The clients of one provider type.

    Args:
        type: The type.
        gen_ai_name: Its `gen_ai.provider.name` in OpenTelemetry's conventions.
        address: Returns the address of the vendor's API for a provider.
        clients: Its clients by backend: those of the type's families, and its default client.
        probe: Asks a server whether it accepts key and model.
    """

    type: ProviderType
    gen_ai_name: str
    address: Callable[[ProviderPlan], str]
    clients: Mapping[Backend, ClientSpec]
    probe: Callable[[ProbeTarget], Awaitable[Probed]]


def langchain_client(chat: ChatSpec) -> ClientSpec:
    """Returns the client of the langchain backend for a chat model."""

    def build(
        provider: ProviderPlan, key: str | None, /, *, lent_to: Collection[str], destinations: Destinations
    ) -> LLMClient:
        """Builds the client of a provider (`ClientFactory`).

        Args:
            provider: The model, its server and its settings.
            key: The API key; None for servers that need none.
            lent_to: Namespaces whose providers may use this pod's own identity with Google.
            destinations: Permitted destinations of URLs.
        """
        return LangChainProvider(provider, key, chat, lent_to=lent_to, destinations=destinations)

    return ClientSpec(build, chat.package)
