"""Recognizes finished Alerts whose status is as `tarsy.controllers.alert` would write it, without parsing them.

A pure function of JSON documents. It knows the one form in which tens of thousands of Alerts end: investigated, and not
folded into another. An Alert of any other form is reconciled, which decides by the same rules and costs more.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tarsy.controllers.runs.restored import ACCEPTED_UID
from tarsy.resources.v1alpha1.common import ConditionType

_PHASE = "Finished"
_ACCEPTED = ("True", "InvestigationCreated", "A chain takes the alert.")
_FINISHED = ("True", "InvestigationFinished", "The investigation ended.")


def alert_rests(raw: Mapping[str, Any], investigation: Mapping[str, Any] | None) -> datetime | None:
    """Checks whether a reconcile would leave a finished Alert as it is.

    Args:
        raw: the Alert.
        investigation: its Investigation, which has finished; None: it is gone.

    Returns:
        The time at which the Alert finished; None: it must be reconciled.
    """
    meta, status = raw["metadata"], raw["status"]
    generation = meta.get("generation")
    conditions = {one.get("type"): one for one in status["conditions"]}
    finished = conditions[ConditionType.FINISHED]
    if (
        (meta.get("annotations") or {}).get(ACCEPTED_UID) != meta["uid"]
        or status.get("foldedInto") is not None
        or not status.get("investigationRef")
        or status.get("phase") != _PHASE
        or status.get("observedGeneration") != generation
        or any(
            one.get("observedGeneration") != generation or not one.get("lastTransitionTime")
            for one in conditions.values()
        )
        or _told(conditions.get(ConditionType.ACCEPTED)) != _ACCEPTED
    ):
        return None
    outcome = _told(conditions.get(ConditionType.SUCCEEDED))
    if investigation is not None:
        theirs = {one.get("type"): one for one in investigation["status"]["conditions"]}
        if _told(finished) != _FINISHED or outcome != _told(theirs.get(ConditionType.SUCCEEDED)):
            return None
    if outcome is None or outcome[0] == "Unknown":
        return None
    return datetime.fromisoformat(finished["lastTransitionTime"])


def _told(condition: Mapping[str, Any] | None) -> tuple[str, str, str] | None:
    if condition is None:
        return None
    return condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")
