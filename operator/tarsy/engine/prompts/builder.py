"""Builds the messages an agent starts with.

Composition follows seed 004, "Three-tier instruction composition": general SRE rules, what the tool servers say of
themselves, the agent's own instructions. Templates are text files beside this one; values are inserted with
`string.Template`, so nothing in a value is ever interpreted.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from tarsy.engine.context import chain_context
from tarsy.engine.prompts.fence import fence
from tarsy.engine.task import Task
from tarsy.plan.model import AgentPlan
from tarsy.record.messages import Message, Role


@cache
def template(name: str) -> Template:
    """The template file `name`.txt, read once."""
    return Template(files("tarsy.engine.prompts").joinpath("templates", f"{name}.txt").read_text("utf-8").strip())


def investigation_messages(
    agent: AgentPlan,
    task: Task,
    unavailable: Mapping[str, str],
    instructions: Mapping[str, str],
    sections: Sequence[str] = (),
) -> tuple[Message, ...]:
    """System and user message of an investigating agent.

    `unavailable` are tool servers that could not be opened (name to reason), `instructions` what the plan says of each
    server, `sections` what the strategy adds to the system message.
    """
    tiers = [template("general").substitute()]
    tiers += [f"## Tool server {name}\n\n{text}" for name, text in instructions.items() if text.strip()]
    if unavailable:
        lines = "\n".join(f"- {name}: {reason}" for name, reason in sorted(unavailable.items()))
        tiers.append(template("unavailable").substitute(servers=fence("UNAVAILABLE_SERVERS", lines)))
    tiers += sections
    return (_system(agent, tiers), _user(_alert_sections(task), template("task").substitute(stage=task.stage_name)))


def server_instructions(agent: AgentPlan, own: Mapping[str, str]) -> dict[str, str]:
    """What an agent is told about each of its tool servers: the plan's words, and, as data, the server's own."""
    told = {}
    for server in agent.servers:
        theirs = own.get(server.name, "").strip()
        told[server.name] = "\n\n".join(
            part for part in (server.instructions.strip(), fence("SERVER_SAYS", theirs) if theirs else "") if part
        )
    return told


def synthesis_messages(agent: AgentPlan, task: Task, context: str) -> tuple[Message, ...]:
    """System and user message of a synthesising agent; `context` is all that the stage's agents did."""
    sections = [*_alert_sections(task), f"## Investigations to combine\n\n{context}"]
    return (
        _system(agent, [template("synthesis").substitute()]),
        _user(sections, template("synthesis_task").substitute(count=len(task.agents))),
    )


def summary_messages(agent: AgentPlan, analysis: str) -> tuple[Message, ...]:
    """System and user message of the executive summary."""
    return (
        _system(agent, [template("executive_summary").substitute()]),
        _user([f"## Final analysis\n\n{fence('ANALYSIS', analysis)}"], template("executive_summary_task").substitute()),
    )


def conclusion_message(iterations: int, *, requested: bool) -> Message:
    """Asks for a conclusion out of what is known; `requested` when a person asked for it."""
    reason = template("conclude_requested" if requested else "conclude_limit").substitute(iterations=iterations)
    return Message(Role.USER, f"{reason}\n\n{template('conclude').substitute()}")


def nudge_message(*, tools: bool) -> Message:
    """Answers an empty answer; `tools`: whether the model may still call one."""
    return Message(Role.USER, template("nudge" if tools else "nudge_no_tools").substitute())


def retry_message(error: str, partial: str) -> Message:
    """Tells a model that its last answer was lost; at most 2,000 characters of it (reference section 1.4)."""
    text = template("retry").substitute(error=error)
    return Message(Role.USER, f"{text}\n\n{fence('PARTIAL_ANSWER', partial[-2000:])}" if partial else text)


def _system(agent: AgentPlan, tiers: Sequence[str]) -> Message:
    parts = [f"Agent: {agent.name}", *tiers]
    if agent.instructions.strip():
        parts.append(f"## Your instructions\n\n{agent.instructions.strip()}")
    return Message(Role.SYSTEM, "\n\n".join(parts))


def _user(sections: Sequence[str], task: str) -> Message:
    return Message(Role.USER, "\n\n".join([*sections, f"## Your task\n\n{task}"]))


def _alert_sections(task: Task) -> list[str]:
    sections = [f"## Alert\n\nType: {task.alert_type}\n\n{fence('ALERT_DATA', task.alert_data)}"]
    if task.runbook.strip():
        sections.append(f"## Runbook\n\n{fence('RUNBOOK', task.runbook)}")
    if context := chain_context(task.previous):
        sections.append(f"## What earlier stages concluded\n\n{context}")
    return sections
