"""Makes the patches by which people ask for another score, for the API and for the plugin alike.

Decision: a request is a change of the object, made with the person's own token: admission and the audit log see the
person. An annotation asks for one Investigation, and the operator removes it when it has taken the request; a field
of the EvalSuite asks for all of some days.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tarsy.resources.v1alpha1.scoring import SCORE_REQUEST


def why_not_scored(investigation: Mapping[str, Any] | None, which: str) -> tuple[int, str] | None:
    """Returns why an investigation cannot be scored, as a status of HTTP and a sentence; None: it can.

    Args:
        investigation: the object; None: there is none.
        which: its namespace and name.
    """
    if investigation is None:
        return 404, f"there is no Investigation {which}"
    status = investigation.get("status") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    if "replay" in investigation["spec"]:
        return 409, f"Investigation {which} is a replay, and replays are measured by EvalRuns"
    if conditions.get("Finished") != "True":
        return 409, f"Investigation {which} has not ended; it is scored when it has"
    if not status.get("finding"):
        return 409, f"Investigation {which} has no finding to score"
    return None


def investigation_patch(investigation: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Returns the patch that asks for another score of an Investigation.

    Args:
        investigation: the object.
        now: time of the request.
    """
    meta = {"uid": investigation["metadata"]["uid"], "annotations": {SCORE_REQUEST: _time(now)}}
    return {"metadata": meta}


def why_not_rescored(suite: Mapping[str, Any] | None, which: str) -> tuple[int, str] | None:
    """Returns why a suite scores nothing once more, as a status of HTTP and a sentence; None: it does.

    Args:
        suite: the object; None: there is none.
        which: its namespace and name.
    """
    if suite is None:
        return 404, f"there is no EvalSuite {which}"
    if not (suite["spec"].get("scoring") or {}).get("enabled", False):
        return 409, f"EvalSuite {which} scores nothing: set spec.scoring with enabled: true"
    return None


def suite_patch(suite: Mapping[str, Any], days: int, now: datetime) -> dict[str, Any]:
    """Returns the patch that asks for another score of all investigations of some days.

    Args:
        suite: the EvalSuite.
        days: the days before `now`.
        now: time of the request.
    """
    rescore = {"requestedAt": _time(now), "days": days}
    return {"metadata": {"uid": suite["metadata"]["uid"]}, "spec": {"scoring": {"rescore": rescore}}}


def _time(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
