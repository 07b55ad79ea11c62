"""Finds the parts of an object's masking that cannot be used, by field.

It stands here and not with the other checks of the plan, because only maskers know their names and what RE2 takes.
"""

from tarsy.masking import faults
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.plan.parts import masking_plan
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.mcp_server import MCPServer

_FIELDS = {"groups": "patternGroups", "patterns": "patterns", "custom": "customPatterns"}


def masking_errors(obj: AnyResource) -> list[PlanError]:
    """Lists the errors in the masking of an MCPServer or of InvestigationDefaults; none for other kinds."""
    settings: dict[str, Masking | None] = {}
    match obj:
        case MCPServer():
            settings = {"masking": obj.spec.masking}
        case InvestigationDefaults():
            settings = {"alertMasking": obj.spec.alert_masking, "modelOutputMasking": obj.spec.model_output_masking}
        case _:
            pass
    return [
        (FieldPath.of(obj) / field / _FIELDS[fault.part])[fault.index].error(fault.sentence)
        for field, masking in settings.items()
        if masking is not None
        for fault in faults(masking_plan(masking))
    ]
