"""Alert: one received alert.

Decision: `data` is opaque text. Whatever the sender wrote is what the agents read, so there is nothing to configure
per sender; only its size is limited, in bytes, because etcd counts bytes.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import SHA256, AlertType, Model, ObjectName, Rule, Time, Uid, Unique
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
"""What 1 MiB may become when it is masked, with room to spare."""

Severity = Literal["Critical", "Warning", "Info"]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class RecordedData(Model):
    """A text that the intake keeps beside the record, because it is too large for an object."""

    digest: Annotated[str, StringConstraints(min_length=64, max_length=64, pattern=SHA256)] = Field(
        description="SHA-256 of the text, as hex, by which it is found."
    )
    size_bytes: Annotated[int, Field(ge=1, le=MAX_RECORDED_BYTES)] = Field(description="Its size in bytes.")
    preview: Annotated[str, StringConstraints(max_length=1024)] = Field(
        default="", description="How it begins, for people."
    )


class AlertDataSource(Model):
    """Where the alert's data is; exactly one place."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.configMapKeyRef) != has(self.record)",
            "set configMapKeyRef (a key of a ConfigMap); record is for the intake, which sets nothing else",
            lambda self: (self.config_map_key_ref is None) != (self.record is None),
        ),
    )

    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="A key of a ConfigMap in the same namespace that holds the data (at most 1 MiB)."
    )
    record: RecordedData | None = Field(default=None, description="A text that the intake keeps; it sets this.")


FITS_AN_OBJECT = Rule(
    f"!has(self.data) || size(bytes(self.data)) <= {MAX_DATA_BYTES}",
    f"data must have at most {MAX_DATA_BYTES} bytes (256 KiB); put larger data into a ConfigMap "
    "and name it in dataFrom.configMapKeyRef",
    lambda self: self.data is None or len(self.data.encode()) <= MAX_DATA_BYTES,
    field="data",
)


class AlertContent(Model):
    """What an alert says, and what its investigation shall use."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.data) != has(self.dataFrom)",
            "set exactly one of data (the text itself) and dataFrom.configMapKeyRef (a key of a ConfigMap)",
            lambda self: (self.data is None) != (self.data_from is None),
        ),
        FITS_AN_OBJECT,
        Rule(
            "!has(self.data) || self.data.matches('[^ \\\\t\\\\r\\\\n]')",
            "data must not be empty; put the text of the alert there",
            lambda self: self.data is None or re.search(r"[^ \t\r\n]", self.data) is not None,
            field="data",
        ),
    )

    alert_type: AlertType = Field(
        description="The type of the alert, which chooses the chain, such as the name of the alerting rule."
    )
    # Bounds for the schema only: in Python the rules above speak, which also name the remedy.
    data: str | None = Field(
        default=None,
        description="The alert as text, of any format, at most 262144 bytes.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_DATA_BYTES},
    )
    data_from: AlertDataSource | None = Field(default=None, description="Where the alert's text is instead.")
    runbook: Runbook | None = Field(
        default=None, description="How to go about this alert; the namespace's default when not set."
    )
    chain_ref: NameRef | None = Field(
        default=None, description="The chain to run, whatever alertType says; first in this namespace."
    )
    mcp_servers: Annotated[tuple[McpSelection, ...], Field(min_length=1, max_length=32), Unique("name")] | None = Field(
        default=None,
        description="The only MCP servers the agents get, in place of those that chain and agents name.",
    )
    native_tools: NativeTools | None = Field(
        default=None, description="Tools of the model's provider, on or off for this alert."
    )
    incident_key: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = Field(
        default=None,
        description="The incident that the alert belongs to. Alerts of a namespace with equal keys have one "
        "investigation, as long as the incident goes on: until its investigation has ended and no alert of it came for "
        "an hour.",
    )
    severity: Severity | None = Field(
        default=None,
        description="Critical ones are run before others that wait, those of severity Info after; Warning when not "
        "set.",
    )


class AlertSpec(AlertContent):
    """What an alert says, and how long its object stays."""

    RULES: ClassVar[tuple[Rule, ...]] = (
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
        ),
    )

    budget: Budget | None = Field(
        default=None, description="What the run may use; where its chain says less, that counts."
    )
    author: Author | None = Field(default=None, description=STAMPED)
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS, description="Seconds from the end of its investigation to its deletion."
    )


class InvestigationRef(Model):
    """The investigation of an alert."""

    name: ObjectName = Field(description="Name of the Investigation.")
    uid: Uid = Field(description="Its metadata.uid.")


class AlertReference(Model):
    """An alert of the same namespace."""

    name: ObjectName = Field(description="Name of the Alert.")
    uid: Uid = Field(description="Its metadata.uid.")


class AlertStatus(Status):
    """What became of an alert."""

    phase: Literal["Pending", "Waiting", "Investigating", "Folded", "Finished", "Rejected"] | None = Field(
        default=None,
        description="For people: Pending, Waiting (for a chain to exist), Investigating, Folded (into another alert of "
        "its incident), Finished, Rejected.",
    )
    investigation_ref: InvestigationRef | None = Field(
        default=None, description="The investigation that was made for the alert, or for the one it was folded into."
    )
    folded_into: AlertReference | None = Field(
        default=None, description="The alert with the same incidentKey whose investigation is this one's too."
    )
    repeats: Count | None = Field(default=None, description="How often its incident came again.")
    folded: Count | None = Field(
        default=None, description="Incidents that are not investigated but counted here, because it was a storm."
    )
    last_received: Time | None = Field(default=None, description="When the incident came the last time.")
    resolved_at: Time | None = Field(default=None, description="When its sender said that it fires no more.")


class Alert(Resource[AlertSpec, AlertStatus]):
    """One received alert. It is investigated by the chain of its type, or by the one it names."""

    KIND: ClassVar[str] = "Alert"
    PLURAL: ClassVar[str] = "alerts"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("talert",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Alert type", ".spec.alertType", description="The type of the alert."),
        Column("Severity", ".spec.severity", description="How severe it is."),
        Column("Phase", ".status.phase", description="What became of it."),
        Column(
            "Outcome",
            '.status.conditions[?(@.type=="Succeeded")].reason',
            description="How its investigation ended.",
        ),
        Column("Investigation", ".status.investigationRef.name", description="Its investigation."),
        AGE,
        Column(
            "Reason",
            '.status.conditions[?(@.type=="Accepted")].reason',
            description="Why it was accepted, or not.",
            wide=True,
        ),
        Column("Repeats", ".status.repeats", "integer", "How often its incident came again.", wide=True),
        Column("Folded", ".status.folded", "integer", "Incidents that are counted here only.", wide=True),
        Column("Author", ".spec.author.username", description="Who created it.", wide=True),
        Column("Incident", ".spec.incidentKey", description="The incident it belongs to.", wide=True),
    )

    kind: Literal["Alert"] = "Alert"
    status: AlertStatus = AlertStatus()
