"""Reads the integrity classes of a tool result from the declaration of its server's object, and the server's marks.

A server marks with `tarsy.dev/integrity` in the `_meta` of a result that has one block of text: `{"K": [[start, end],
...]}`, places in the text in characters. Marks count only where the object trusts them, and never in a result that it
declares to come from outside.
"""

from dataclasses import replace

import mcp_types as types

from tarsy.plan.model import EvidencePlan, ServerPlan
from tarsy.record.integrity import EvidenceMarks, Integrity, checked_spans

RESULT_INTEGRITY = "tarsy.dev/integrity"


def result_marks(plan: ServerPlan, tool: str, result: types.CallToolResult, text: str) -> EvidenceMarks | None:
    """Returns the classes and labels of a result; None where the server's object declares nothing that concerns it.

    Args:
        plan: the server.
        tool: name of the tool on its server.
        result: the response of the server.
        text: what became of it.
    """
    marks = None if result.is_error else evidence_marks(plan.evidence, tool, result, text)
    return labelled(plan, tool, marks)


def labelled(plan: ServerPlan, tool: str, marks: EvidenceMarks | None) -> EvidenceMarks | None:
    """Returns the marks of a result with the label that its server's object gives results of the tool."""
    if not plan.data_flow.is_sensitive(tool):
        return marks
    return replace(marks or EvidenceMarks(), sensitive=True)


def evidence_marks(
    declared: EvidencePlan | None, tool: str, result: types.CallToolResult, text: str
) -> EvidenceMarks | None:
    """Returns the classes of a result; None where its server's object declares nothing.

    Args:
        declared: by the object of the server.
        tool: name of the tool on its server.
        result: the response of the server.
        text: what became of it.
    """
    if declared is None:
        return None
    integrity = declared.integrity_of(tool)
    spans: tuple[tuple[int, int], ...] = ()
    if declared.trust_marks and integrity is Integrity.A and len(result.content) == 1:
        block, marks = result.content[0], (result.meta or {}).get(RESULT_INTEGRITY)
        if isinstance(block, types.TextContent) and block.text == text and isinstance(marks, dict):
            spans = checked_spans(marks.get(Integrity.K.value), len(text))
    return EvidenceMarks(integrity, spans, declared.is_state(tool))
