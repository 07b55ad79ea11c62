"""AlertRoute: which alerts that come in over HTTP become Alerts, where, and for which chain.

Decision: the address that a sender uses says whose routes are asked (`?namespace=`, else the library's), and a route is
usable by whoever may create Alerts where it leads, by nobody else. A sender with a token is asked for that right
itself; one with a shared secret counts as the ServiceAccount that the route names.
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
    Rule,
    Time,
    Unique,
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
    """What one label must be, as in Alertmanager; a label that is not there is an empty one."""

    name: MatcherLabel = Field(description="The label's name; __source__ is alertmanager, json or text.")
    match_type: Literal["=", "!=", "=~", "!~"] = Field(
        default="=", description="Equal, not equal, matches or does not match the expression."
    )
    value: Annotated[str, StringConstraints(max_length=1024)] = Field(
        description="The value, or an RE2 expression that must match all of the label."
    )


class BasicAuth(Model):
    """A name and a password, as in HTTP basic authentication."""

    username: Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=USERNAME)] = Field(
        description="The name."
    )
    password_secret_ref: SecretKeyRef = Field(description="The password.")


class HmacAuth(Model):
    """An HMAC-SHA256 of the body, in hex, with or without `sha256=` before it."""

    secret_ref: SecretKeyRef = Field(description="The shared key.")
    header: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=HEADER_NAME)] = Field(
        default="X-Hub-Signature-256", description="The header it comes in."
    )


class RouteAuth(Model):
    """How senders without a token of the cluster show who they are; exactly one way."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.basic) != has(self.hmac)",
            "set exactly one of basic (name and password) and hmac (signature)",
            lambda self: (self.basic is None) != (self.hmac is None),
        ),
    )

    basic: BasicAuth | None = Field(default=None, description="HTTP basic authentication.")
    hmac: HmacAuth | None = Field(default=None, description="A signature of the body.")
    service_account_name: ObjectName = Field(
        default="default",
        description="ServiceAccount of this namespace that is the author of their Alerts: it must be allowed to create "
        "Alerts where the route leads, and to use the chain.",
    )


class JsonFields(Model):
    """Where in a JSON body things are, as JSON pointers (RFC 6901) such as /alert/name."""

    alert_type: Pointer | None = Field(default=None, description="The alert type, where the route sets none.")
    severity: Pointer | None = Field(default=None, description="The severity, where the route sets none.")
    labels: Pointer | None = Field(
        default=None, description="An object whose members are the labels; the body itself when not set."
    )
    group_key: Pointer | None = Field(
        default=None,
        description="What is equal in all bodies about one thing. Without it, and without groupBy, each different "
        "body is about a thing of its own.",
    )
    starts_at: Pointer | None = Field(
        default=None,
        description="Since when it fires: RFC 3339, or seconds since 1970. What fires since later is another incident; "
        "where nobody says, what comes after an hour of silence is.",
    )
    status: Pointer | None = Field(default=None, description="Whether it fires; all fire when not set.")
    resolved_values: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=64)], ...], Field(max_length=16), Unique()
    ] = Field(default=("closed", "ok", "resolved"), description="The values of status by which it fires no more.")


class Storm(Model):
    """When alerts come too fast to be investigated one by one."""

    alerts: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=20, description="So many new incidents of this route within the time are investigated one by one."
    )
    seconds: Annotated[int, Field(ge=1, le=3600)] = Field(default=60, description="The time.")


class AlertRouteSpec(Model):
    """Which alerts the route takes, and what becomes of them."""

    matchers: tuple[Matcher, ...] = Field(
        default=(), max_length=32, description="All must hold; a route without any takes every alert."
    )
    precedence: Annotated[int, Field(ge=-1000, le=1000)] = Field(
        default=0, description="Of routes that match, the highest takes the alert; then the one with more matchers."
    )
    namespace: LabelName | None = Field(
        default=None, description="Where the Alerts are created; the route's own namespace when not set."
    )
    alert_type: AlertType | None = Field(
        default=None, description="The type of the Alerts; the label alertname when not set."
    )
    chain_ref: NameRef | None = Field(
        default=None, description="The chain to run, whatever the alert type says; first in the Alerts' namespace."
    )
    severity: Severity | None = Field(
        default=None, description="The severity of the Alerts; what the label severity says when not set."
    )
    budget: Budget | None = Field(default=None, description="What each run may use.")
    group_by: Annotated[tuple[MatcherLabel, ...], Field(max_length=16), Unique()] = Field(
        default=(),
        description="Alerts that are equal in these labels are about one thing; as the sender groups when not set.",
    )
    json_fields: JsonFields | None = Field(default=None, alias="json", description="How JSON bodies are read.")
    auth: RouteAuth | None = Field(
        default=None, description="How senders without a token of the cluster show who they are."
    )
    storm: Storm | None = Field(
        default=None,
        description="When alerts come too fast: those beyond it are folded into one Alert and counted there. More than "
        "20 in 60 seconds when not set.",
    )
    notify: Notify = Field(
        default=(), description="Who is told how the investigations of its Alerts end, beside those of the chain."
    )


class AlertRouteStatus(ConfigStatus):
    """Whether the route can be used, and what it took."""

    matched_count: Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})] | None = Field(
        default=None, description="Notifications that the route took."
    )
    last_matched: Time | None = Field(default=None, description="When it took the last one.")


class AlertRoute(Resource[AlertRouteSpec, AlertRouteStatus]):
    """Says which alerts from outside become Alerts, where, and for which chain; senders name a namespace."""

    KIND: ClassVar[str] = "AlertRoute"
    PLURAL: ClassVar[str] = "alertroutes"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("troute",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Alert type", ".spec.alertType", description="The type of its Alerts."),
        Column("Matched", ".status.matchedCount", "integer", "Notifications that it took."),
        Column("Last", ".status.lastMatched", "date", "Time since the last one."),
        AGE,
        Column("Chain", ".spec.chainRef.name", description="The chain that it names.", wide=True),
        NOTIFY_COLUMN,
        MESSAGE_COLUMN,
    )

    kind: Literal["AlertRoute"] = "AlertRoute"
    spec: AlertRouteSpec = AlertRouteSpec()
    status: AlertRouteStatus = AlertRouteStatus()
