"""What of an object's masking cannot be used, by field.

It stands here and not with the other checks of the plan, because only maskers know their names and what RE2 takes.
"""

from tarsy.masking import faults
from tarsy.plan.errors import At, PlanError
from tarsy.plan.parts import masking_plan
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults
from tarsy.resources.v1alpha1.mcp_server import MCPServer

_FIELDS = {"groups": "patternGroups", "patterns": "patterns", "custom": "customPatterns"}


def masking_errors(obj: AnyResource) -> list[PlanError]:
    """All that is wrong with the masking of an MCPServer or of InvestigationDefaults; nothing for other kinds."""
    match obj:
        case MCPServer():
            masking, at = obj.spec.masking, At.of(obj) / "masking"
        case InvestigationDefaults() if obj.spec.alert_masking is not None:
            masking, at = obj.spec.alert_masking, At.of(obj) / "alertMasking"
        case _:
            return []
    found = faults(masking_plan(masking))
    return [(at / _FIELDS[fault.part])[fault.index].error(fault.sentence) for fault in found]
