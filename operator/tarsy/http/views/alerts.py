"""Alerts as they are handed in, and what became of them.

Decision: what was handed in is not served again: the object holds it as it came, unmasked, and the record of its
investigation has it masked.
"""

from typing import Annotated, ClassVar, Final, Self

from pydantic import Field

from tarsy.http.route import View
from tarsy.http.views.common import ConditionView
from tarsy.resources.schema import ObjectName, Rule
from tarsy.resources.v1alpha1.alert import FITS_AN_OBJECT, Alert, AlertContent
from tarsy.resources.v1alpha1.common import WEEK_SECONDS, Budget, TtlSeconds

MAX_SUBMITTED_BYTES: Final = 1_048_576


class AlertSubmission(AlertContent):
    """An alert to investigate: the fields of an Alert's spec, and its name."""

    RULES: ClassVar[tuple[Rule, ...]] = tuple(rule for rule in AlertContent.RULES if rule is not FITS_AN_OBJECT)

    data: str | None = Field(
        default=None,
        description="The alert as text, of any format, at most 1048576 bytes (1 MiB). More than 262144 bytes are kept "
        "in the record, masked, and the Alert names them.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_SUBMITTED_BYTES},
    )
    name: Annotated[ObjectName, Field(description="Of the Alert; one is made when not given.")] | None = None
    budget: Budget | None = Field(
        default=None, description="What the run may use; where its chain says less, that counts."
    )
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS, description="Seconds from the end of its investigation to its deletion."
    )


class SubmittedAlert(View):
    """An alert that was taken."""

    namespace: str
    name: str
    uid: str
    alert_type: str


class AlertView(SubmittedAlert):
    """An alert, and what became of it."""

    phase: str | None = Field(
        description="Pending, Waiting (for a chain to exist), Investigating, Folded, Finished, Rejected."
    )
    investigation: str | None = Field(description="Name of its investigation.")
    investigation_uid: str | None
    folded_into: str | None = Field(
        description="Name of the alert with the same incidentKey whose investigation it is."
    )
    conditions: tuple[ConditionView, ...]

    @classmethod
    def of(cls, alert: Alert) -> Self:
        """An Alert without what it says."""
        ref = alert.status.investigation_ref
        return cls(
            namespace=alert.metadata.namespace,
            name=alert.metadata.name,
            uid=alert.metadata.uid,
            alert_type=alert.spec.alert_type,
            phase=alert.status.phase,
            investigation=ref.name if ref else None,
            investigation_uid=ref.uid if ref else None,
            folded_into=alert.status.folded_into.name if alert.status.folded_into else None,
            conditions=tuple(ConditionView.of(one) for one in alert.status.conditions),
        )
