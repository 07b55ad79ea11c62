"""Renders the request for values of an external result, and the texts that replace the result for agents."""

from collections.abc import Sequence

from tarsy.engine.conversation.truncation import truncate_middle
from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.template import template
from tarsy.plan.model import ExtractedFieldPlan
from tarsy.record.messages import Message, Role


def extraction_request(
    agent: str, tool: str, text: str, fields: Sequence[ExtractedFieldPlan], *, limit: int
) -> tuple[Message, ...]:
    """Returns system and user message of an extraction. It knows nothing of the investigation.

    Args:
        agent: who asks for it, as models are told.
        tool: `server.tool`.
        text: the result.
        fields: that are declared.
        limit: bytes of the result that are told.
    """
    listed = "\n".join(_field(field) for field in fields)
    task = template("extract_task").substitute(tool=inline(tool), fields=listed)
    result = fence("TOOL_RESULT", truncate_middle(text, limit, "it is too long to be read whole"))
    parts = [f"## The result\n\n{result}", f"## You\n\nAgent: {inline(agent)}", f"## Your task\n\n{task}"]
    return Message(Role.SYSTEM, template("extract").template), Message(Role.USER, "\n\n".join(parts))


def values_told(values: str) -> str:
    """Returns what an agent is told instead of a result from outside.

    Args:
        values: taken from it, one line a field.
    """
    return f"{template('values_told').template}\n\n{values}"


def no_values_told(why: str) -> str:
    """Returns what an agent is told of a result from outside that no values were taken from.

    Args:
        why: as the end of a sentence that begins with because.
    """
    return template("no_values").substitute(why=inline(why, 300))


def outside_error_told() -> str:
    """Returns what an agent is told of a failed call whose error text comes from outside."""
    return template("outside_error").template


def _field(field: ExtractedFieldPlan) -> str:
    kinds = {
        "Number": "decimal numbers",
        "Time": "dates or times, as they stand there",
        "Enum": f"one of: {', '.join(field.values)}",
        "Identifier": "words without blanks",
        "Quote": "words of one line, as they stand there",
    }
    about = f" ({inline(field.description, 300)})" if field.description else ""
    most = f"at most {field.max_items}"
    size = f", each at most {field.longest} characters" if field.type in ("Identifier", "Quote") else ""
    return f"- {field.name}{about}: {kinds[field.type]}; {most}{size}"
