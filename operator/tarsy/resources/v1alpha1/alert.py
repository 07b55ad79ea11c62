"""Alert: one received alert.

Decision: `data` is opaque text. Agents read it as the sender wrote it, so there is nothing to configure per sender. Its
size is limited in bytes, because etcd counts bytes.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import SHA256, AlertType, Model, ObjectName, Time, Uid, Unique, ValidationRule
from tarsy.resources.v1alpha1.common import (
    STAMPED,
    WEEK_SECONDS,
    Author,
    Budget,
    ConfigMapKeyRef,
    McpSelection,
    NameRef,
    NativeTools,
    Runbook,
    TtlSeconds,
    immutable,
)

MAX_DATA_BYTES = 262_144
MAX_RECORDED_BYTES = 8_388_608
"""Upper size of masked data: 1 MiB before masking, with room to spare."""

Severity = Literal["Critical", "Warning", "Info"]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class RecordedData(Model):
    """Alert data stored with the record because it is too large for an object."""

    digest: Annotated[str, StringConstraints(min_length=64, max_length=64, pattern=SHA256)] = Field(
        description="SHA-256 of the text, in hex, which identifies it."
    )
    size_bytes: Annotated[int, Field(ge=1, le=MAX_RECORDED_BYTES)] = Field(description="Size in bytes.")
    preview: Annotated[str, StringConstraints(max_length=1024)] = Field(
        default="", description="First part of the text, for people."
    )


class AlertDataSource(Model):
    """Source of the alert's data. Set exactly one."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.configMapKeyRef) != has(self.record)",
            "set configMapKeyRef (a key of a ConfigMap); record is for the intake, which sets nothing else",
            lambda self: (self.config_map_key_ref is None) != (self.record is None),
        ),
    )

    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="Key of a ConfigMap in the same namespace that holds the data (at most 1 MiB)."
    )
    record: RecordedData | None = Field(default=None, description="Data stored by the intake. Set by the intake only.")


FITS_AN_OBJECT = ValidationRule(
    f"!has(self.data) || size(bytes(self.data)) <= {MAX_DATA_BYTES}",
    f"data must have at most {MAX_DATA_BYTES} bytes (256 KiB); put larger data into a ConfigMap "
    "and name it in dataFrom.configMapKeyRef",
    lambda self: self.data is None or len(self.data.encode()) <= MAX_DATA_BYTES,
    field="data",
)


class AlertContent(Model):
    """Content of an alert and settings of its investigation."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.data) != has(self.dataFrom)",
            "set exactly one of data (the text itself) and dataFrom.configMapKeyRef (a key of a ConfigMap)",
            lambda self: (self.data is None) != (self.data_from is None),
        ),
        FITS_AN_OBJECT,
        ValidationRule(
            "!has(self.data) || self.data.matches('[^ \\\\t\\\\r\\\\n]')",
            "data must not be empty; put the text of the alert there",
            lambda self: self.data is None or re.search(r"[^ \t\r\n]", self.data) is not None,
            field="data",
        ),
    )

    alert_type: AlertType = Field(
        description="Alert type, such as the name of the alerting rule. It selects the chain."
    )
    # Bounds for the schema only: in Python the rules above speak, which also name the remedy.
    data: str | None = Field(
        default=None,
        description="Alert text in any format, at most 262144 bytes.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_DATA_BYTES},
    )
    data_from: AlertDataSource | None = Field(default=None, description="Source of the alert text, instead of data.")
    runbook: Runbook | None = Field(
        default=None, description="Runbook for this alert. Defaults to the runbook of the namespace."
    )
    chain_ref: NameRef | None = Field(
        default=None, description="Chain to run, regardless of alertType. Looked up first in this namespace."
    )
    mcp_servers: Annotated[tuple[McpSelection, ...], Field(min_length=1, max_length=32), Unique("name")] | None = Field(
        default=None,
        description="MCP servers of the agents. They replace all servers named by the chain and its agents.",
    )
    native_tools: NativeTools | None = Field(
        default=None, description="Native tools of the model provider to enable or disable for this alert."
    )
    incident_key: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = Field(
        default=None,
        description="Key of the incident that the alert belongs to. Alerts of a namespace with the same key "
        "share one investigation while the incident is open. The incident closes when its "
        "investigation has finished and no alert of it arrived for an hour.",
    )
    severity: Severity | None = Field(
        default=None,
        description="Severity of the alert. Critical alerts run before other pending ones, Info alerts after. "
        "Defaults to Warning.",
    )


class AlertSpec(AlertContent):
    """Content of an alert and retention of its object."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        *AlertContent.RULES,
        *immutable(
            "Alert",
            "alertType",
            "data",
            "dataFrom",
            "runbook",
            "chainRef",
            "mcpServers",
            "nativeTools",
            "incidentKey",
            "severity",
            "budget",
            "author",
            "reader",
        ),
    )

    budget: Budget | None = Field(
        default=None, description="Usage limits of the run. If the chain sets a lower limit, the lower one applies."
    )
    author: Author | None = Field(default=None, description=STAMPED)
    reader: Author | None = Field(
        default=None,
        description="The user whose rights limit what stages of kind Changes read. Set by the intake as its "
        "AlertRoute declares; leave it out. Defaults to the author.",
    )
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS, description="Seconds from the end of the investigation to the deletion of this object."
    )


class InvestigationRef(Model):
    """A reference to the investigation of an alert."""

    name: ObjectName = Field(description="Name of the Investigation.")
    uid: Uid = Field(description="metadata.uid of the Investigation.")


class AlertReference(Model):
    """A reference to an alert of the same namespace."""

    name: ObjectName = Field(description="Name of the Alert.")
    uid: Uid = Field(description="metadata.uid of the Alert.")


class AlertStatus(Status):
    """Progress of an alert."""

    phase: Literal["Pending", "Waiting", "Investigating", "Folded", "Finished", "Rejected"] | None = Field(
        default=None,
        description="Phase for display: Pending, Waiting (for a chain to exist), Investigating, Folded (into "
        "another alert of its incident), Finished, Rejected.",
    )
    investigation_ref: InvestigationRef | None = Field(
        default=None, description="Investigation created for this alert, or for the alert it was folded into."
    )
    folded_into: AlertReference | None = Field(
        default=None, description="Alert with the same incidentKey whose investigation this alert shares."
    )
    repeats: Count | None = Field(default=None, description="Number of times the incident was received again.")
    folded: Count | None = Field(
        default=None, description="Number of incidents counted here instead of investigated, because of an alert storm."
    )
    last_received: Time | None = Field(default=None, description="Time at which the incident was last received.")
    resolved_at: Time | None = Field(
        default=None, description="Time at which the sender reported the alert as resolved."
    )


class Alert(Resource[AlertSpec, AlertStatus]):
    """One received alert. The chain of its type, or the chain it names, investigates it."""

    KIND: ClassVar[str] = "Alert"
    PLURAL: ClassVar[str] = "alerts"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("talert",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Alert type", ".spec.alertType", description="Alert type."),
        Column("Severity", ".spec.severity", description="Severity of the alert."),
        Column("Phase", ".status.phase", description="Phase of the alert."),
        Column(
            "Outcome",
            '.status.conditions[?(@.type=="Succeeded")].reason',
            description="Outcome of the investigation.",
        ),
        Column("Investigation", ".status.investigationRef.name", description="Investigation of the alert."),
        AGE,
        Column(
            "Reason",
            '.status.conditions[?(@.type=="Accepted")].reason',
            description="Reason why the alert was accepted or not.",
            wide=True,
        ),
        Column("Repeats", ".status.repeats", "integer", "Number of times the incident was received again.", wide=True),
        Column("Folded", ".status.folded", "integer", "Number of incidents that are only counted here.", wide=True),
        Column("Author", ".spec.author.username", description="User who created the alert.", wide=True),
        Column("Incident", ".spec.incidentKey", description="Incident that the alert belongs to.", wide=True),
    )

    kind: Literal["Alert"] = "Alert"
    status: AlertStatus = AlertStatus()
