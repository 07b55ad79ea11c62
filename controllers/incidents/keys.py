"""Folds alerts of one incident: equal `spec.incidentKey` in a namespace means one Investigation.

The first Alert of a key that a chain takes leads its incident; those that follow are folded into it, counted on it, and
report its Investigation as theirs. An incident is over as at the intake: when its investigation has ended and no alert
came for an hour, or when its sender resolved it. It is also over when its leader was deleted, or never ran.

Decision: the leader is a row in Postgres, chosen under a lock, because two active controllers may overlap for seconds
and the watch may show Alerts in any order.
"""

from datetime import datetime

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.lookup import look_up
from tarsy.kube.client import KubeClient
from tarsy.resources.meta import Condition, condition, set_condition
from tarsy.resources.v1alpha1 import Alert, AlertStatus, Investigation
from tarsy.resources.v1alpha1.alert import AlertReference
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.intake import Intake, Led

_TRIES = 10


async def leader_of(alert: Alert, key: str, cache: Cache, client: KubeClient, intake: Intake) -> Alert | None:
    """Finds the Alert that leads the incident of an Alert; None: it leads the incident itself from now on.

    Args:
        alert: one that a chain takes, and that has no Investigation.
        key: its incidentKey.
        cache: what is in the cluster.
        client: asked where the cache does not know the leader yet.
        intake: knows who leads.

    Raises:
        ApiError: the Kubernetes API is away.
        StoreError: Postgres is away.
    """
    meta = alert.metadata
    found = await intake.lead(meta.namespace, key, meta.name, meta.uid)
    for _ in range(_TRIES):  # each time somebody else led meanwhile
        if found.own:
            return None
        leader = await look_up(Alert, meta.namespace, found.alert, cache, client, uid=found.alert_uid)
        if leader is not None and stands(found, leader, await _investigation(leader, cache, client)):
            await intake.follow(found.incident, meta.namespace, meta.name, meta.uid)
            return leader
        found = await intake.lead(meta.namespace, key, meta.name, meta.uid, instead_of=found.incident)
    return None


def stands(led: Led, leader: Alert, investigation: Investigation | None) -> bool:
    """Checks whether an incident goes on, so that another Alert of its key is folded into it.

    Args:
        led: what is on record of it.
        leader: the Alert that leads it.
        investigation: of the leader; None: not there yet, or deleted.
    """
    if led.resolved or leader.status.folded_into is not None:
        return False
    if investigation is None:
        ended = condition(leader.status.conditions, ConditionType.FINISHED)
        return ended is None or ended.status != "True"
    ended = condition(investigation.status.conditions, ConditionType.FINISHED)
    if ended is None or ended.status != "True":
        return True
    accepted = condition(investigation.status.conditions, ConditionType.ACCEPTED)
    return led.recent and accepted is not None and accepted.status == "True"


async def leader_again(alert: Alert, cache: Cache, client: KubeClient) -> Alert | None:
    """Finds the Alert that a folded one follows; None when it is gone.

    Args:
        alert: the folded Alert.
        cache: the cached objects.
        client: is asked where the cache does not have the leader.
    """
    reference = alert.status.folded_into
    if reference is None:
        return None
    ended = condition(alert.status.conditions, ConditionType.FINISHED)
    if ended is not None and ended.status == "True":  # nothing changes any more that the API would be asked for
        found = cache.get(Alert, alert.metadata.namespace, reference.name)
        return found if found is not None and found.metadata.uid == reference.uid else None
    return await look_up(Alert, alert.metadata.namespace, reference.name, cache, client, uid=reference.uid)


def folded_status(alert: Alert, leader: Alert | None, now: datetime) -> AlertStatus:
    """Makes the status of a folded Alert.

    Args:
        alert: which.
        leader: what it follows; None: it is gone.
        now: the time.
    """
    old, generation = alert.status, alert.metadata.generation
    reference = AlertReference(name=leader.metadata.name, uid=leader.metadata.uid) if leader else old.folded_into
    name = reference.name if reference else ""
    conditions = old.conditions
    accepted = Condition(
        type=ConditionType.ACCEPTED,
        status="True",
        reason="Folded",
        message=f"The alert is folded into Alert {name}, which has the same incidentKey; both share its investigation.",
    )
    for item in (accepted, _end(old, leader)):
        conditions = set_condition(conditions, item.model_copy(update={"observed_generation": generation}), now)
    return old.model_copy(
        update={
            "observed_generation": generation,
            "conditions": conditions,
            "phase": "Folded",
            "folded_into": reference,
            "investigation_ref": (leader.status.investigation_ref if leader else None) or old.investigation_ref,
        }
    )


def _end(old: AlertStatus, leader: Alert | None) -> Condition:
    before = condition(old.conditions, ConditionType.FINISHED)
    if before is not None and before.status == "True":
        return before
    if leader is None:
        text = "The leading alert of the incident was deleted."
        return Condition(type=ConditionType.FINISHED, status="True", reason="InvestigationDeleted", message=text)
    theirs = condition(leader.status.conditions, ConditionType.FINISHED)
    if theirs is not None and theirs.status == "True":
        return Condition(type=ConditionType.FINISHED, status="True", reason=theirs.reason, message=theirs.message)
    text = "The investigation has not ended."
    return Condition(type=ConditionType.FINISHED, status="False", reason="NotFinished", message=text)


async def _investigation(leader: Alert, cache: Cache, client: KubeClient) -> Investigation | None:
    reference, namespace = leader.status.investigation_ref, leader.metadata.namespace
    if reference is None:
        return None
    return await look_up(Investigation, namespace, reference.name, cache, client, uid=reference.uid)
