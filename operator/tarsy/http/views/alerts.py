"""Models of submitted alerts and of their progress.

Decision: the submitted text is not returned. The Alert object holds it unmasked; the record of its investigation holds
it masked.
"""

from typing import Annotated, ClassVar, Final, Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import ConditionView
from tarsy.resources.schema import AlertType, ObjectName, ValidationRule
from tarsy.resources.v1alpha1.alert import FITS_AN_OBJECT, Alert, AlertContent
from tarsy.resources.v1alpha1.common import WEEK_SECONDS, Budget, TtlSeconds

MAX_SUBMITTED_BYTES: Final = 1_048_576


class AlertSubmission(AlertContent):
    """An alert to investigate: the fields of an Alert's spec, and an optional name."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = tuple(
        rule for rule in AlertContent.RULES if rule is not FITS_AN_OBJECT
    )

    alert_type: AlertType | None = Field(  # type: ignore[assignment]  # the namespace may have a default
        default=None,
        description="Alert type, such as the name of the alerting rule. It selects the chain. Defaults to "
        "`defaultAlertType` of the InvestigationDefaults of the namespace.",
    )
    data: str | None = Field(
        default=None,
        description="Text of the alert in any format, at most 1048576 bytes (1 MiB). A text of more than 262144 bytes "
        "is masked and stored in the record; the Alert refers to it.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_SUBMITTED_BYTES},
    )
    name: Annotated[ObjectName, Field(description="Name of the Alert. Generated when omitted.")] | None = None
    budget: Budget | None = Field(
        default=None, description="Budget of the run. Lower limits of its chain take precedence."
    )
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS, description="Seconds between the end of the investigation and the deletion of the Alert."
    )


class SubmittedAlert(View):
    """An accepted alert."""

    namespace: str
    name: str
    uid: str
    alert_type: str


class AlertView(SubmittedAlert):
    """An alert and its progress."""

    phase: str | None = Field(
        description="One of Pending, Waiting (for a chain to exist), Investigating, Folded, Finished, Rejected."
    )
    investigation: str | None = Field(description="Name of its Investigation.")
    investigation_uid: str | None
    folded_into: str | None = Field(
        description="Name of the Alert with the same incidentKey that owns the investigation."
    )
    conditions: tuple[ConditionView, ...]

    @classmethod
    def of(cls, alert: Alert) -> Self:
        """Converts an Alert, without its text."""
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
