"""Defines the fields common to all kinds: apiVersion, kind, metadata, spec, status, and conditions.

Decision: a status is always present in Python (empty when the object has none yet), so no reader checks whether it
exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field, StringConstraints

from tarsy.resources.schema import Lenient, Model, Time, Unique, ValidationRule, clipped, whole_seconds

GROUP = "tarsy.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "tarsy"
MAX_STATUS_BYTES = 73_728
"""Bytes of a status with the longest texts of all fields; etcd takes 1.5 MB an object."""

ConditionStatus = Literal["True", "False", "Unknown"]


class OwnerReference(Lenient):
    """An object that owns this one."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Lenient):
    """The part of metav1.ObjectMeta that this project reads or writes."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Lenient):
    """One aspect of the object's state."""

    model_config = ConfigDict(json_schema_extra={"required": ["type", "status", "lastTransitionTime", "reason"]})

    type: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="Type of the condition, in CamelCase."
    )
    status: ConditionStatus = Field(description="Status of the condition.")
    reason: Annotated[
        str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="Reason for the status, as one CamelCase word for programs.")
    message: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] = Field(
        default="", description="Explanation of the status, for people."
    )
    last_transition_time: Time | None = Field(default=None, description="Time at which the status last changed.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation that this condition reflects."
    )


Conditions = Annotated[tuple[Condition, ...], Unique("type")]


class Status(Lenient):
    """Status fields common to all kinds."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation that this status reflects."
    )
    conditions: Conditions = Field(
        default=(), max_length=6, description="Conditions of the object, for programs and kubectl wait."
    )


def condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """Returns the condition of that type, or None."""
    return next((item for item in conditions if item.type == type_), None)


def set_condition(conditions: tuple[Condition, ...], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """Returns `conditions` with `new` replacing the condition of its type. The transition time becomes `now` only if
    the status changed.

    Args:
        conditions: current conditions of the object.
        new: the wanted condition; its own last_transition_time is ignored.
        now: time of this change, with a time zone.
    """
    old = condition(conditions, new.type)
    kept = old.last_transition_time if old is not None and old.status == new.status else None
    stamped = new.model_copy(update={"last_transition_time": kept or whole_seconds(now)})
    if old is None:
        return (*conditions, stamped)
    return tuple(stamped if item.type == new.type else item for item in conditions)


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`; with `wide`, of `kubectl get -o wide` only."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    description: str = ""
    wide: bool = False


AGE = Column("Age", ".metadata.creationTimestamp", "date", "Time since the object was created.")


SpecT = TypeVar("SpecT", bound=Model)
StatusT = TypeVar("StatusT", bound=Status)


class Resource(Model, Generic[SpecT, StatusT]):
    """An object of one of the kinds. Each kind sets the class variables and the types of spec and status."""

    model_config = ConfigDict(extra="ignore")

    KIND: ClassVar[str]
    PLURAL: ClassVar[str]
    SHORT_NAMES: ClassVar[tuple[str, ...]]
    COLUMNS: ClassVar[tuple[Column, ...]]
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = ()
    RULES: ClassVar[tuple[ValidationRule, ...]] = ()

    api_version: Literal["tarsy.dev/v1alpha1"] = "tarsy.dev/v1alpha1"
    kind: str
    metadata: ObjectMeta
    spec: SpecT
    status: StatusT

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def __str__(self) -> str:
        return f"{self.KIND} {self.key}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form for the API, without unset fields and without an empty status."""
        document = super().to_dict()
        document["metadata"] = self.metadata.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if self.status == type(self.status)():
            del document["status"]
        return document


AnyResource = Resource[Any, Any]
