"""Determines the verdict of a sub-agent on its hypothesis, as far as the record supports it.

A verdict that decides (Supported, Refuted) needs a claim whose citations hold, checked as those of a finding are. One
that has none is Unresolved, with the reason: the word of a model alone decides nothing.
"""

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.findings.conclusion import finding_value
from tarsy.engine.prompts.fence import inline
from tarsy.record.dispatch import HypothesisVerdict, VerdictValue
from tarsy.record.finding import Finding
from tarsy.record.ids import event_id
from tarsy.record.timeline import VERDICT, Event, EventStatus, EventType

MOST_CITATIONS = 8
"""Citations of a verdict that its timeline event has."""


def weigh_verdict(text: str, finding: Finding) -> HypothesisVerdict:
    """Returns the verdict of a final answer.

    Args:
        text: of the answer.
        finding: of the answer, with its citations checked.
    """
    said = finding_value(text, "verdict")
    stated = inline(said, 100) if said else None
    value = next((one for one in VerdictValue if stated is not None and one.value.lower() == stated.lower()), None)
    if value is None:
        reason = (
            "the agent gave no verdict" if stated is None else f'the agent gave the verdict "{stated}", which is none'
        )
        return _unresolved(stated, reason, finding)
    if value is VerdictValue.UNRESOLVED or any(claim.grounded for claim in finding.claims):
        return HypothesisVerdict(verdict=value, stated=value.value, claims=finding.claims)
    if any(claim.supported for claim in finding.claims):
        reason = "its claims name what neither their quotes nor the alert have"
    elif any(claim.citations for claim in finding.claims):
        reason = "none of its citations holds"
    else:
        reason = "it cites nothing"
    return _unresolved(value.value, f"the agent says {value.value}, but {reason}", finding)


def verdict_event(conversation: Conversation, hypothesis: str, found: HypothesisVerdict) -> Event:
    """Returns the timeline event of a verdict.

    Args:
        conversation: of the sub-agent.
        hypothesis: as its parent put it.
        found: the verdict.
    """
    cited = [citation for claim in found.claims for citation in claim.citations][:MOST_CITATIONS]
    return Event(
        id=event_id(conversation.execution, "verdict"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=verdict_sentence(hypothesis, found),
        metadata={
            "reason": VERDICT,
            "hypothesis": hypothesis,
            "verdict": found.verdict.value,
            **({"why": found.reason} if found.reason else {}),
            "citations": [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in cited],
        },
        stage=conversation.stage,
        execution=conversation.execution,
    )


def verdict_sentence(hypothesis: str, found: HypothesisVerdict) -> str:
    """Returns a verdict as a sentence.

    Args:
        hypothesis: as its parent put it.
        found: the verdict.
    """
    why = f" ({found.reason})" if found.reason else ""
    return f'Verdict on "{inline(hypothesis, 500)}": {found.verdict.value}{why}.'


def no_verdict(reason: str) -> HypothesisVerdict:
    """Returns the verdict of a sub-agent that did not come to a conclusion.

    Args:
        reason: why not, as a clause.
    """
    return HypothesisVerdict(verdict=VerdictValue.UNRESOLVED, reason=reason)


def _unresolved(stated: str | None, reason: str, finding: Finding) -> HypothesisVerdict:
    return HypothesisVerdict(verdict=VerdictValue.UNRESOLVED, stated=stated, reason=reason, claims=finding.claims)
