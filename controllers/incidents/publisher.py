"""Creates the Alerts that the intake still owes, and writes the counts of incidents to their Alerts.

Watches: incidents and routes in Postgres, every two seconds. Decides: nothing. Writes: Alerts that an intake could not
make (it was killed, or the Kubernetes API was away, and nobody sent again), how often an incident came on its Alert,
and hands routes whose count has grown to their reconcile.
"""

import logging
from collections.abc import Callable

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.lookup import look_up
from tarsy.controllers.machinery.status import write_status
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.v1alpha1 import Alert, AlertRoute
from tarsy.runtime.incidents import AlertRefused, make_alert
from tarsy.store.intake import Intake, Owed, Tally

_log = logging.getLogger(__name__)
ROUND_SECONDS = 2.0
OWED_SECONDS = 5.0
"""The intake that opened an incident has this long to make its Alert itself."""


class Incidents:
    """Creates owed Alerts and writes counts.

    Args:
        look_at: takes the key of an object that is to be reconciled.
    """

    def __init__(self, client: KubeClient, cache: Cache, intake: Intake, look_at: Callable[[Key], None]) -> None:
        self._client = client
        self._cache = cache
        self._intake = intake
        self._look_at = look_at

    async def round(self) -> None:
        """Does all that is due; an Alert that cannot be written is left for the next round.

        Raises:
            ApiError: the Kubernetes API is away.
            StoreError: Postgres is away.
        """
        for owed in await self._intake.owed(older_seconds=OWED_SECONDS):
            await self._make(owed)
        for tally in await self._intake.unpublished():
            try:
                await self._tell(tally)
            except ApiError as error:
                if error.transient:
                    raise
                _log.info(
                    "the status of Alert %s/%s could not be written; retrying: %s",
                    tally.namespace,
                    tally.alert,
                    error.message,
                )
        for uid, namespace, name in await self._intake.changed_routes():
            key = Key(AlertRoute.KIND, namespace, name)
            version = self._cache.version(key)
            if version is not None and version.uid == uid:
                self._look_at(key)

    async def _make(self, owed: Owed) -> None:
        try:
            await make_alert(owed, self._client, self._intake)
        except AlertRefused as refused:
            _log.warning(
                "Alert %s/%s was refused and is not created again: %s", owed.namespace, owed.name, refused.message
            )
        except ApiError as error:
            if error.transient:
                raise
            _log.warning("Alert %s/%s could not be created; retrying: %s", owed.namespace, owed.name, error.message)

    async def _tell(self, tally: Tally) -> None:
        where = (tally.namespace, tally.alert)
        alert = await look_up(Alert, *where, self._cache, self._client, uid=tally.alert_uid)
        if alert is not None:
            told = {
                "repeats": tally.repeats,
                "folded": tally.folded,
                "last_received": tally.last_received.replace(microsecond=0),
                "resolved_at": tally.resolved_at.replace(microsecond=0) if tally.resolved_at else None,
            }
            await write_status(self._client, self._cache, alert, alert.status.model_copy(update=told))
        await self._intake.published(tally)
