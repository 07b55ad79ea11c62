"""Names the flaws of a run, and the digest by which lists recognise alerts that are alike.

The record keeps both (migration 40). Flaws of the evidence are known while a run goes on, those of the finding and of
refused calls when it has ended.
"""

import hashlib
from enum import StrEnum
from typing import Any

import orjson

from tarsy.record.finding import Finding


class Flaw(StrEnum):
    """Something that lowers the worth of a finding, and that a reader of a list must see."""

    EVIDENCE_DEGRADED = "EvidenceDegraded"
    UNSUPPORTED_CLAIMS = "UnsupportedClaims"
    UNGROUNDED_CLAIMS = "UngroundedClaims"
    CONTRADICTED_CLAIMS = "ContradictedClaims"
    UNSTRUCTURED = "Unstructured"
    BUDGET_REACHED = "BudgetReached"
    CONCLUDED_EARLY = "ConcludedEarly"
    ARGUMENT_REFUSED = "ArgumentRefused"
    TOOL_NOT_VERIFIED = "ToolNotVerified"


def flaws_of_finding(finding: Finding) -> tuple[Flaw, ...]:
    """Returns the flaws of a finding itself, as the record counts them (migration 40), in the order of `Flaw`."""
    claims = finding.claims
    found = {
        Flaw.UNSUPPORTED_CLAIMS: any(not claim.supported for claim in claims),
        Flaw.UNGROUNDED_CLAIMS: any(claim.supported and claim.ungrounded for claim in claims),
        Flaw.CONTRADICTED_CLAIMS: any(claim.contradicted for claim in claims),
        Flaw.UNSTRUCTURED: not finding.structured,
    }
    return tuple(flaw for flaw, there in found.items() if there)


def alert_key(namespace_uid: str, alert_type: str, data: str) -> bytes:
    """Returns a digest that is equal for alerts that are alike: of one namespace and type, with equal labels.

    Args:
        namespace_uid: uid of the namespace.
        alert_type: of the alert.
        data: its text; labels are read from JSON as Alertmanager sends it. Without labels, the whole text counts.
    """
    text = orjson.dumps(_labels(data) or data.strip(), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(f"{namespace_uid}\n{alert_type}\n".encode() + text).digest()[:16]


def _labels(data: str) -> dict[str, Any] | None:
    if not data.lstrip().startswith("{"):
        return None
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    labels = found.get("labels") if isinstance(found, dict) else None
    return labels if isinstance(labels, dict) and labels else None
