"""Creates the Alerts of incidents.

An incident is opened in Postgres together with the Alert it owes; the Alert is made after that, by the process that
took the notification, by the one that takes the next, or by the active controller. Decision: its name follows from the
incident, so all of them may try, and what one of them did before it was killed counts.
"""

import logging

from tarsy.kube.client import ApiError, KubeClient
from tarsy.store.intake import Intake, Owed

_log = logging.getLogger(__name__)
_NEVER = ("Invalid", "BadRequest", "NotFound", "RequestEntityTooLarge")
"""The API's words for an object that can never be: it is wrong itself, or there is no such namespace."""


class AlertRefused(Exception):
    """The Kubernetes API does not take the Alert, and never will; `message` is its sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def make_alert(owed: Owed, client: KubeClient, intake: Intake) -> None:
    """Makes the Alert of an incident, where it has not been made.

    Args:
        owed: the Alert.
        client: as the operator, which may name the author of an Alert.
        intake: is told.

    Raises:
        AlertRefused: it can never be made; what led to it is rejected.
        ApiError: the Kubernetes API is away, or does not allow it now.
        StoreError: Postgres is away.
    """
    if owed.manifest is None:
        return
    try:
        made = await client.create(owed.manifest)
    except ApiError as error:
        if error.reason == "AlreadyExists":
            made = await client.get("Alert", owed.namespace, owed.name)
        elif error.reason in _NEVER:
            await intake.refused(owed.incident, "AlertRefused")
            raise AlertRefused(error.message) from None
        else:
            raise
    await intake.made(owed.incident, made["metadata"]["uid"])
