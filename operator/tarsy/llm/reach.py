"""Resolves a provider's server and the check of the addresses that its client connects to.

Decision: a client never sees `spec.baseURL` as it was written, only its canonical form, and makes no connection of its
own: `tarsy.outbound` resolves, judges and connects. The makers' own addresses are chosen by no spec and not judged.
"""

from dataclasses import dataclass
from functools import lru_cache

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.outbound.address_check import AddressCheck, Of
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan
from tarsy.plan.place import Place

ANYWHERE = Destinations()
ADDRESS_NOT_ALLOWED = "spec.baseURL is not allowed: "


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A provider's server.

    Args:
        url: The canonical URL of its API.
        host: Its host, as `Place` has it.
        judge: Checks the addresses of the host.
        makers: Whether it is the vendor's own, whose messages may be shown in a status.
    """

    url: str
    host: str
    judge: AddressCheck
    makers: bool


def server_of(provider: ProviderPlan, address: str, destinations: Destinations = ANYWHERE) -> ModelServer:
    """Finds the server of a provider.

    Args:
        provider: the model, its server and its settings.
        address: of the maker's API, for a provider without an address of its own.
        destinations: where URLs may lead.

    Raises:
        ModelError: INVALID_REQUEST: it may not be asked.
    """
    if provider.base_url is None:
        place = Place.of(address)
        return ModelServer(place.url, place.host, Of(None), True)
    found = _place(provider.base_url, provider.ref.namespace, destinations)
    if isinstance(found, str):
        raise ModelError(ModelErrorCode.INVALID_REQUEST, f"provider {provider.ref.name}: {found}", retryable=False)
    return ModelServer(found.url, found.host, Of(destinations, provider.ref.namespace), False)


def check_reach(provider: ProviderPlan, destinations: Destinations) -> None:
    """Rejects a provider whose URL is not allowed.

    Raises:
        ModelError: INVALID_REQUEST: it may not be asked.
    """
    if provider.base_url is not None:
        server_of(provider, provider.base_url, destinations)


@lru_cache(1024)
def _place(url: str, namespace: str, destinations: Destinations) -> Place | str:
    """Returns the place of a URL, judged by its text alone; or why it may not be asked."""
    try:
        place = Place.of(url)
    except ValueError as error:
        return f"spec.baseURL is not a usable http(s) URL: {error}"
    why = destinations.why_not(place.url, namespace)
    return f"{ADDRESS_NOT_ALLOWED}{why}" if why else place
