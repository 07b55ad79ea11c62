"""Decides whether a final answer is accepted or sent back to its model, once for each reason.

Two reasons. A text that has the shape of a tool call and was not taken as one: the model meant to call. An
investigation's answer before any tool was called, where there are tools: it can only repeat the alert. Both are told
with the tools bound, as one more iteration, so an agent at its limit is not sent back. Pure functions of the record: an
attempt that resumes decides the same. `limits.finding_repairs` 0 turns the second one off, like every other repair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tarsy.engine.findings.citations import cited
from tarsy.engine.findings.conclusion import CALL_ID, read_finding
from tarsy.engine.model_calls.text_calls import why_not_taken
from tarsy.engine.prompts import builder
from tarsy.engine.skills.agent_skills import LOAD_SKILL
from tarsy.plan.model import AgentLimits
from tarsy.record.messages import Message, ToolDefinition
from tarsy.record.run import LoopState


@dataclass(frozen=True, slots=True)
class Expected:
    """Declares the requirements of an agent's final answer.

    Args:
        tools: those that the agent has.
        how: how its strategy calls one, in a sentence.
        max_iterations: model calls after which a conclusion is forced.
        limits: of the run.
        evidence: whether it must call a tool first.
        earlier: whether earlier stages left calls that it may cite.
        functions: whether its tools are called by functions, not in text.
    """

    tools: Sequence[ToolDefinition]
    how: str
    max_iterations: int
    limits: AgentLimits
    evidence: bool = False
    earlier: bool = False
    functions: bool = True


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an answer is sent back: a CamelCase reason, a sentence for people, the message for the model."""

    reason: str
    notice: str
    message: Message


def objection(loop: LoopState, text: str, expected: Expected) -> Objection | None:
    """Why a text without calls is not the agent's final answer; None when it is.

    Args:
        loop: the loop's state after the answer.
        text: the answer.
        expected: of it.
    """
    if loop.concluding or loop.repeated_answers or not text.strip() or loop.iteration >= expected.max_iterations:
        return None
    names = [tool.name for tool in expected.tools]
    if expected.functions and names and "ToolCallAsText" not in loop.sent_back:
        why = why_not_taken(text, expected.tools)
        if why is not None:
            notice = f"The model wrote a tool call as text, and it was not made: {why.replace('you have', 'it has')}."
            message = builder.call_as_text_message(why, names)
            return Objection(reason="ToolCallAsText", notice=f"{notice} It is told once.", message=message)
    names = [name for name in names if name != LOAD_SKILL]
    wanted = expected.evidence and bool(names) and bool(expected.limits.finding_repairs)
    if not wanted or loop.tool_calls or "NoToolCalled" in loop.sent_back:
        return None
    if expected.earlier and (cited(read_finding(text)[0]) or CALL_ID.search(text)):
        return None
    notice = "The model gave its final answer before it called any tool. The answer is sent back once."
    return Objection(reason="NoToolCalled", notice=notice, message=builder.no_evidence_message(names, expected.how))
