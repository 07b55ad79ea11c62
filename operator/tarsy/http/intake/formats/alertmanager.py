"""Reads notifications of Alertmanager (version 4), and of Grafana, whose webhook has the same fields (version 1).

Decision: one body is one notification, grouped by its sender, and leads to at most one Alert. So routes match the
labels that all firing alerts of the group share; a label in which they differ counts as missing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from tarsy.http.intake.formats.notification import Notification, SentModel, as_alert_type, as_severity


class _OneAlert(SentModel):
    status: Literal["firing", "resolved"] = "firing"
    labels: dict[str, str] = Field(default_factory=dict)
    starts_at: AwareDatetime


class _Group(SentModel):
    group_key: str = Field(min_length=1)
    status: Literal["firing", "resolved"]
    alerts: tuple[_OneAlert, ...] = Field(min_length=1)
    common_labels: dict[str, str] = Field(default_factory=dict)
    truncated_alerts: int = 0


class _Alertmanager(_Group):
    version: Literal["4"]


class _Grafana(_Group):
    version: Literal["1"]


def read_alertmanager(document: Mapping[str, Any]) -> Notification:
    """Returns the notification of a group of Alertmanager.

    Raises:
        pydantic.ValidationError: the document has not the format.
    """
    return _of_group(_Alertmanager.model_validate(document))


def read_grafana(document: Mapping[str, Any]) -> Notification:
    """Returns the notification of a group of Grafana's alerting.

    Raises:
        pydantic.ValidationError: the document has not the format.
    """
    return _of_group(_Grafana.model_validate(document))


def _of_group(group: _Group) -> Notification:
    firing = [alert for alert in group.alerts if alert.status == "firing"] if group.status == "firing" else []
    looked_at = firing or list(group.alerts)
    common, differing = _common([alert.labels for alert in looked_at])
    if group.truncated_alerts:  # only the sender knows the labels of the rest
        common = group.common_labels
    earliest = min(looked_at, key=lambda alert: alert.starts_at)
    return Notification(
        labels=common,
        group=group.group_key,
        firing=bool(firing),
        first=earliest.starts_at,
        last=max(alert.starts_at for alert in looked_at),
        alert_type=as_alert_type(common.get("alertname") or earliest.labels.get("alertname")),
        severity=as_severity(common.get("severity")),
        differing=frozenset(differing),
    )


def _common(labels: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], set[str]]:
    """Returns the common labels, and the names of the differing ones."""
    first, *others = labels
    common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
    return common, {name for one in labels for name in one} - common.keys()
