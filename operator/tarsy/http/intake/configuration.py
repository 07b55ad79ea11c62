"""Reads AlertRoutes and masking settings from the Kubernetes API, and caches them for seconds.

Decision: the intake does not use the caches of the controllers. A process that has just started must not report that no
route matches; each notification is routed by the current routes, or answered with 503.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tarsy.http.errors import Unavailable
from tarsy.http.intake.routing import target
from tarsy.http.review_cache import ReviewCache
from tarsy.kube.client import ApiError, KubeClient
from tarsy.masking import InvalidPattern, Maskers, default_masker, mask_or_fail, usable
from tarsy.plan.model import MaskingPlan
from tarsy.plan.parts import masking_plan
from tarsy.plan.select import search_path
from tarsy.resources.parse import parse_valid, valid_or_none
from tarsy.resources.v1alpha1 import AlertRoute, InvestigationDefaults
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME

_log = logging.getLogger(__name__)
ROUTES_SECONDS = 2.0
"""Maximum delay in seconds until a new route is used."""

LISTS_AT_ONCE = 16
_DEFAULTS_SECONDS = 5.0
_NAMESPACES = 10_000


class Configuration:
    """Reads AlertRoutes, and masks texts by InvestigationDefaults.

    Args:
        client: authenticated as the operator.
        library_namespace: namespace of the fallback defaults.
        namespaces: namespaces of this installation; empty: all.
        seconds: lifetime of cached routes.
    """

    def __init__(
        self,
        client: KubeClient,
        library_namespace: str,
        namespaces: tuple[str, ...] = (),
        *,
        seconds: float = ROUTES_SECONDS,
    ) -> None:
        self._client = client
        self._library_namespace = library_namespace
        self._namespaces = namespaces
        self._routes: ReviewCache[str, list[AlertRoute]] = ReviewCache(lambda _: seconds, size=_NAMESPACES)
        self._defaults: ReviewCache[str, InvestigationDefaults | None] = ReviewCache(
            lambda _: _DEFAULTS_SECONDS, size=_NAMESPACES
        )
        self._lists = asyncio.Semaphore(LISTS_AT_ONCE)
        self._maskers = Maskers()
        self._usual = default_masker().mask

    async def routes(self, namespace: str) -> list[AlertRoute]:
        """Returns the routes of a namespace whose target this installation works in.

        Args:
            namespace: the namespace; empty: the library.

        Raises:
            Unavailable: the Kubernetes API is unavailable.
        """
        place = namespace or self._library_namespace
        with _asking():
            return await self._routes.get(place, lambda: self._list(place))

    async def alert_type(self, namespace: str) -> str | None:
        """Returns the type of alerts of a namespace that come without one; None: its own defaults name none.

        Args:
            namespace: of the Alert.

        Raises:
            Unavailable: the Kubernetes API is unavailable.
        """
        with _asking():
            defaults = await self._of(namespace)
        return defaults.spec.default_alert_type if defaults is not None else None

    async def mask(self, text: str, namespace: str) -> str:
        """Masks a text by the defaults of a namespace (`tarsy.masking.mask_or_fail`).

        Raises:
            Unavailable: the Kubernetes API is unavailable.
        """
        with _asking():
            mask = await self._mask_of(namespace)
        return await asyncio.to_thread(mask_or_fail, mask, text, "an alert")

    async def _list(self, namespace: str) -> list[AlertRoute]:
        async with self._lists:  # unauthenticated senders may name any namespace
            listed = await self._client.list(AlertRoute.KIND, namespace)
        routes = parse_valid(AlertRoute, listed)
        return [route for route in routes if not self._namespaces or target(route) in self._namespaces]

    async def _of(self, namespace: str) -> InvestigationDefaults | None:
        return await self._defaults.get(namespace, lambda: self._read(namespace))

    async def _mask_of(self, namespace: str) -> Callable[[str], str]:
        for place in search_path(namespace, self._library_namespace):
            defaults = await self._of(place)
            if defaults is None:
                continue
            if defaults.spec.alert_masking is None:
                return self._usual
            return await asyncio.to_thread(self._compiled, masking_plan(defaults.spec.alert_masking), place)
        return self._usual

    def _compiled(self, setting: MaskingPlan, place: str) -> Callable[[str], str]:
        try:
            return self._maskers.of(setting)
        except InvalidPattern as error:
            _log.warning("alertMasking of namespace %s is used without its invalid entries: %s", place, error.sentence)
            return self._maskers.of(usable(setting))

    async def _read(self, namespace: str) -> InvestigationDefaults | None:
        raw = await self._client.find(InvestigationDefaults.KIND, namespace, DEFAULTS_NAME)
        return valid_or_none(InvestigationDefaults, raw)


@contextmanager
def _asking() -> Iterator[None]:
    """Tells senders to try again while the Kubernetes API is unavailable."""
    try:
        yield
    except ApiError:
        raise Unavailable("the Kubernetes API is unavailable; try again") from None
