"""Renders the results of a stage of kind Changes for the agents of later stages, within a limit of tokens.

Signals have the greater part of the room, because they are facts; what they leave is for changes. What does not fit is
on record, and the text says how much. Everything from objects is fenced like any other tool result.
"""

from collections.abc import Sequence

from tarsy.engine.conversation.truncation import BYTES_PER_TOKEN
from tarsy.engine.prompts.fence import defuse, fence
from tarsy.evidence.briefing import Section
from tarsy.record.messages import Message

EVIDENCE_TOKENS = 2_000
"""Maximum tokens of the evidence that an agent is sent."""

_TRIAGE_TOKENS = 1_100
_MISSING_TOKENS = 150
_INTRODUCTION = (
    "Computed from the objects of the cluster by rules, before a model was asked. Cite it like results of your own "
    "tool calls. Certain signals are facts of the objects; everything else is to be checked."
)


def shown_sections(triage: Section, changes: Section, around: str) -> tuple[str, str]:
    """Returns as much of both sections as agents are sent.

    Args:
        triage: the signals.
        changes: what changed.
        around: `evidence_text` of empty results.
    """
    left = EVIDENCE_TOKENS * BYTES_PER_TOKEN - _bytes(around)
    first = fitting(triage, min(left, _TRIAGE_TOKENS * BYTES_PER_TOKEN))
    return first, fitting(changes, left - _bytes(first))


def fitting(section: Section, most: int) -> str:
    """Returns as much of a section as fits: what it is about, its first items, and what is missing.

    Args:
        section: a tool result.
        most: bytes.
    """
    foot: list[str] = []
    for line in section.foot:
        if _bytes("\n".join((*foot, line))) <= _MISSING_TOKENS * BYTES_PER_TOKEN:
            foot.append(line)
    left = most - sum(_bytes(line) + 1 for line in (*section.head, *foot))
    whole = sum(_bytes(item) + 1 for item in section.items)
    if whole > left:
        left -= _bytes(_omitted(len(section.items))) + 1
    items: list[str] = []
    for item in section.items:
        left -= _bytes(item) + 1
        if left < 0:
            break
        items.append(item)
    omitted = len(section.items) - len(items)
    return "\n".join((*section.head, *items, *([_omitted(omitted)] if omitted else ()), *foot))


def _omitted(count: int) -> str:
    return f"({count:,} more are in the result on record)"


def _bytes(text: str) -> int:
    """Bytes of a text as it stands in a fence."""
    return len(defuse(text).encode())


def evidence_text(messages: Sequence[Message]) -> str | None:
    """Renders the calls for agents of later stages; None without calls."""
    if not messages:
        return None
    parts = [_INTRODUCTION]
    for message in messages:
        header, _, body = message.content.partition("\n")
        parts.append(f"{header}\n{fence('TOOL_RESULT', body)}")
    return "\n\n".join(parts)
