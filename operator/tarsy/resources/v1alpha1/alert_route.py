"""AlertRoute: rules that turn alerts received over HTTP into Alerts.

Decision: the address that a sender uses selects the namespace whose routes apply (`?namespace=`, else the library's). A
caller may use a route only with the right to create Alerts in its target namespace. A sender with a token needs that
right itself; a sender with a shared secret acts as the ServiceAccount that the route names.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import (
    ALERT_LABEL,
    HEADER_NAME,
    JSON_POINTER,
    USERNAME,
    AlertType,
    LabelName,
    Model,
    ObjectName,
    Time,
    Unique,
    ValidationRule,
)
from tarsy.resources.v1alpha1.alert import Severity
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    NOTIFY_COLUMN,
    READY_COLUMNS,
    Budget,
    ConfigStatus,
    NameRef,
    SecretKeyRef,
)
from tarsy.resources.v1alpha1.notify import Notify

MatcherLabel = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=ALERT_LABEL)]
Pointer = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=JSON_POINTER)]


class Matcher(Model):
    """A condition on one label, as in Alertmanager. A missing label counts as empty."""

    name: MatcherLabel = Field(
        description="Label name. The label __source__ is the format of the body: the last part of the intake's path."
    )
    match_type: Literal["=", "!=", "=~", "!~"] = Field(
        default="=", description="Operator: equal, not equal, matches the expression, does not match the expression."
    )
    value: Annotated[str, StringConstraints(max_length=1024)] = Field(
        description="Value, or an RE2 expression that must match the whole label."
    )


class BasicAuth(Model):
    """Credentials for HTTP basic authentication."""

    username: Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=USERNAME)] = Field(
        description="Username."
    )
    password_secret_ref: SecretKeyRef = Field(description="Secret key with the password.")


class HmacAuth(Model):
    """An HMAC-SHA256 signature of the body, in hex, alone or after `sha256=` or `v1=`; several follow a comma."""

    secret_ref: SecretKeyRef = Field(description="Secret key with the shared key.")
    header: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=HEADER_NAME)] = Field(
        default="X-Hub-Signature-256",
        description="Header that carries the signature: X-PagerDuty-Signature of PagerDuty, X-Signature of Flux, "
        "X-Grafana-Alerting-Signature of Grafana.",
    )
    timestamp_header: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=HEADER_NAME)] | None = (
        Field(
            default=None,
            description="Header with the time at which the sender signed, in seconds since 1970, as Grafana can send "
            "it. The signature then covers the time, a colon and the body, and is valid for five minutes.",
        )
    )


class RouteAuth(Model):
    """Authentication of senders that have no cluster token. Set exactly one method."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.basic) != has(self.hmac)",
            "set exactly one of basic (name and password) and hmac (signature)",
            lambda self: (self.basic is None) != (self.hmac is None),
        ),
    )

    basic: BasicAuth | None = Field(default=None, description="HTTP basic authentication.")
    hmac: HmacAuth | None = Field(default=None, description="HMAC signature of the body.")
    service_account_name: ObjectName = Field(
        default="default",
        description="ServiceAccount in this namespace that becomes the author of the Alerts. It must be allowed to "
        "create Alerts in the target namespace and to use the chain.",
    )


class RouteReader(Model):
    """ServiceAccount whose rights limit the reads of stages of kind Changes."""

    service_account_name: ObjectName = Field(
        description="ServiceAccount in this namespace. Stages of kind Changes read only what it may list in the "
        "target namespace, and never more than their own ServiceAccount may."
    )


class JsonFields(Model):
    """Locations of the alert's fields in a JSON body, as JSON pointers (RFC 6901) such as /alert/name."""

    alert_type: Pointer | None = Field(default=None, description="Alert type, if the route sets none.")
    severity: Pointer | None = Field(default=None, description="Severity, if the route sets none.")
    labels: Pointer | None = Field(
        default=None, description="Object whose members are the labels. Defaults to the body itself."
    )
    group_key: Pointer | None = Field(
        default=None,
        description="Value shared by all bodies of one alert group. Without it and without groupBy, each distinct "
        "body forms its own group.",
    )
    starts_at: Pointer | None = Field(
        default=None,
        description="Start time of the alert, as RFC 3339 or seconds since 1970. A later start time begins a new "
        "incident. Without start times, a notification that arrives after an hour of silence begins one.",
    )
    status: Pointer | None = Field(default=None, description="Status of the alert. By default, every alert is firing.")
    resolved_values: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=64)], ...], Field(max_length=16), Unique()
    ] = Field(default=("closed", "ok", "resolved"), description="Values of status that mark an alert as resolved.")


class Storm(Model):
    """Threshold of an alert storm."""

    alerts: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=20, description="Maximum new incidents of this route per interval that are investigated individually."
    )
    seconds: Annotated[int, Field(ge=1, le=3600)] = Field(default=60, description="Length of the interval in seconds.")
    chain_ref: NameRef | None = Field(
        default=None,
        description="Chain of the Alert that stands for a storm. Defaults to the chain of its other Alerts.",
    )


class AlertRouteSpec(Model):
    """Alerts that the route accepts, and settings of the Alerts it creates."""

    matchers: tuple[Matcher, ...] = Field(
        default=(),
        max_length=32,
        description="Conditions that must all match. A route without matchers accepts every alert.",
    )
    precedence: Annotated[int, Field(ge=-1000, le=1000)] = Field(
        default=0, description="Precedence among matching routes. The highest wins, then the route with more matchers."
    )
    namespace: LabelName | None = Field(
        default=None, description="Namespace in which Alerts are created. Defaults to the route's own namespace."
    )
    alert_type: AlertType | None = Field(
        default=None, description="Type of the Alerts. Defaults to the label alertname."
    )
    chain_ref: NameRef | None = Field(
        default=None,
        description="Chain to run, regardless of the alert type. Looked up first in the namespace of the Alerts.",
    )
    severity: Severity | None = Field(
        default=None, description="Severity of the Alerts. Defaults to the label severity."
    )
    budget: Budget | None = Field(default=None, description="Usage limits of each run.")
    group_by: Annotated[tuple[MatcherLabel, ...], Field(max_length=16), Unique()] = Field(
        default=(),
        description="Labels that form a group: alerts with equal values of these labels belong together. Defaults to "
        "the sender's own grouping.",
    )
    json_fields: JsonFields | None = Field(default=None, alias="json", description="Field locations in JSON bodies.")
    auth: RouteAuth | None = Field(default=None, description="Authentication of senders that have no cluster token.")
    reader: RouteReader | None = Field(
        default=None,
        description="Reader of the Alerts: its rights limit what stages of kind Changes read for them. Defaults to the "
        "author of the Alerts.",
    )
    storm: Storm | None = Field(
        default=None,
        description="Threshold of an alert storm. Alerts above it are folded into one Alert and counted there. "
        "Defaults to more than 20 alerts in 60 seconds.",
    )
    notify: Notify = Field(
        default=(),
        description="Notification targets for the investigations of these Alerts, in addition to those of the chain.",
    )


class AlertRouteStatus(ConfigStatus):
    """Readiness and usage of the route."""

    matched_count: Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})] | None = Field(
        default=None, description="Number of notifications that matched this route."
    )
    last_matched: Time | None = Field(default=None, description="Time of the last matching notification.")


class AlertRoute(Resource[AlertRouteSpec, AlertRouteStatus]):
    """A rule that turns alerts received over HTTP into Alerts and selects their namespace and chain."""

    KIND: ClassVar[str] = "AlertRoute"
    PLURAL: ClassVar[str] = "alertroutes"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("troute",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Alert type", ".spec.alertType", description="Type of the Alerts."),
        Column("Matched", ".status.matchedCount", "integer", "Number of notifications that matched this route."),
        Column("Last", ".status.lastMatched", "date", "Time since the last matching notification."),
        AGE,
        Column("Chain", ".spec.chainRef.name", description="Chain named by the route.", wide=True),
        NOTIFY_COLUMN,
        MESSAGE_COLUMN,
    )

    kind: Literal["AlertRoute"] = "AlertRoute"
    spec: AlertRouteSpec = AlertRouteSpec()
    status: AlertRouteStatus = AlertRouteStatus()
