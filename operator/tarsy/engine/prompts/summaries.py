"""Renders the request for a summary of a long result, and the text that replaces the result for the agent.

Whoever summarizes sees what the investigation is about, or it could not know what matters; but only so much of it that
the result stays the larger part.
"""

from dataclasses import dataclass

from tarsy.engine.conversation.truncation import truncate_middle
from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.template import template
from tarsy.record.messages import Message, Role

_ABOUT = 8_000
_LAST_WORDS = 2_000
_ARGUMENTS = 2_000
"""Bytes that are told of the investigation, of what its model said when it made the call, and of the arguments."""
_LEFT_OUT = "the engineer knows the whole"


@dataclass(frozen=True, slots=True)
class Result:
    """A result with the call that it answers.

    Args:
        tool: `server.tool`, as the model wrote it.
        arguments: as recorded.
        text: the result.
        about: what the agent was asked.
        said: what its model said when it made the call.
    """

    tool: str
    arguments: str
    text: str
    about: str
    said: str


def summary_request(agent: str, result: Result, *, tokens: int, limit: int) -> tuple[Message, ...]:
    """System and user message of a summary.

    Args:
        agent: who asks for it, as models are told.
        result: what to summarize.
        tokens: what the summary is asked to stay below.
        limit: bytes of the result that are told.
    """
    parts = [f"## What is investigated\n\n{fence('INVESTIGATION', truncate_middle(result.about, _ABOUT, _LEFT_OUT))}"]
    if result.said.strip():
        parts.append(
            f"## What the engineer said\n\n{fence('LAST_WORDS', truncate_middle(result.said, _LAST_WORDS, _LEFT_OUT))}"
        )
    arguments = fence("ARGUMENTS", truncate_middle(result.arguments, _ARGUMENTS, _LEFT_OUT))
    told = fence("TOOL_RESULT", truncate_middle(result.text, limit, "it is too long to be summarized whole"))
    parts.append(f"## The call of {inline(result.tool)}\n\n{arguments}\n\n{told}")
    parts.append(f"## You\n\nAgent: {inline(agent)}")
    parts.append(f"## Your task\n\n{template('summarize_task').substitute(tool=inline(result.tool))}")
    return (
        Message(Role.SYSTEM, template("summarize").substitute(tokens=f"{tokens:,}")),
        Message(Role.USER, "\n\n".join(parts)),
    )


def summary_told(summary: str, tokens: int) -> str:
    """Renders the text that replaces a long result for an agent."""
    return f"{template('summary_told').substitute(tokens=f'{tokens:,}')}\n\n{summary}"


def result_cut(shortened: str, tokens: int, why: str) -> str:
    """Renders the text that an agent is sent when there is no summary.

    Args:
        shortened: the beginning and the end of the result.
        tokens: of the whole result, estimated.
        why: there is no summary, as the end of a sentence that begins with because.
    """
    return f"{template('result_cut').substitute(tokens=f'{tokens:,}', why=inline(why, 300))}\n\n{shortened}"
