"""Builds the messages an agent starts with.

A system message is a list of tiers in a fixed order (seed 004, "Three-tier instruction composition"; reference section
1.11), one function that joins them, and nothing that knows them all: 0 the calendar, 1 the general rules, 2 the tool
servers and those that are missing, then what the strategy needs, 3 the agent's own instructions. What a later tier
brings (skills between 2 and 3, memories after 3) is one more text in that list. A user message is what is known, the
task last. Everything from outside stands in a fence, or on one line where it is a name.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from tarsy.engine.context import chain_context
from tarsy.engine.prompts.calendar import calendar
from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.template import template
from tarsy.engine.task import Question, Task
from tarsy.plan.model import AgentPlan
from tarsy.plan.policy import ToolPolicy
from tarsy.record.messages import Message, Role


def investigation_messages(
    agent: AgentPlan,
    task: Task,
    now: datetime,
    unavailable: Mapping[str, str],
    instructions: Mapping[str, str],
    sections: Sequence[str] = (),
) -> tuple[Message, ...]:
    """System and user message of an investigating agent.

    `now` is when the execution began, as recorded. `unavailable` are tool servers that could not be opened (name to
    reason), `instructions` what the plan says of each server, `sections` what the strategy adds to the system message.
    """
    tiers = [
        calendar(now),
        _general("general", conduct=_conduct(agent)),
        *_servers(unavailable, instructions),
        *sections,
    ]
    asked = template("task").substitute(stage=inline(task.stage_name))
    return (_system(agent, tiers), _user(_alert_sections(task), asked))


def synthesis_messages(agent: AgentPlan, task: Task, now: datetime, context: str) -> tuple[Message, ...]:
    """System and user message of a synthesising agent; `context` is all that the stage's agents did."""
    sections = [*_alert_sections(task), f"## Investigations to combine\n\n{context}"]
    return (
        _system(agent, [calendar(now), _general("synthesis")]),
        _user(sections, template("synthesis_task").substitute(count=len(task.agents))),
    )


def chat_messages(
    agent: AgentPlan,
    question: Question,
    now: datetime,
    unavailable: Mapping[str, str],
    instructions: Mapping[str, str],
    sections: Sequence[str] = (),
) -> tuple[Message, ...]:
    """System and user message of an agent that answers a question about an investigation (reference section 1.17)."""
    told = [f"## History of the investigation\n\n{question.history}"]
    asked = template("chat_task").substitute(author=inline(question.author))
    rules = template("chat").substitute(evidence=template("evidence").substitute(), conduct=_conduct(agent))
    tiers = [calendar(now), rules]
    return (
        _system(agent, [*tiers, *_servers(unavailable, instructions), *sections]),
        _user(told, f"{asked}\n\n{fence('QUESTION', question.text)}"),
    )


def summary_messages(agent: AgentPlan, analysis: str) -> tuple[Message, ...]:
    """System and user message of the executive summary."""
    return (
        _system(agent, [template("executive_summary").substitute()]),
        _user([f"## Final analysis\n\n{fence('ANALYSIS', analysis)}"], template("executive_summary_task").substitute()),
    )


def server_instructions(agent: AgentPlan, own: Mapping[str, str]) -> dict[str, str]:
    """What an agent is told about each of its tool servers: the plan's words, and, as data, the server's own."""
    told = {}
    for server in agent.servers:
        theirs = own.get(server.name, "").strip()
        told[server.name] = "\n\n".join(
            part for part in (server.instructions.strip(), fence("SERVER_SAYS", theirs) if theirs else "") if part
        )
    return told


def conclusion_message(
    iterations: int, *, requested: bool, budget: str | None = None, repeats: bool = False
) -> Message:
    """Asks for a conclusion out of what is known.

    Args:
        iterations: model calls so far.
        requested: whether a person asked for it.
        budget: which budget is used up, with figures; None when none is.
        repeats: whether the model asked for the same results again and again.
    """
    if budget is not None:
        reason = template("conclude_budget").substitute(budget=inline(budget), iterations=iterations)
    else:
        why = "conclude_requested" if requested else "conclude_repeats" if repeats else "conclude_limit"
        reason = template(why).substitute(iterations=iterations)
    return Message(Role.USER, f"{reason}\n\n{template('conclude').substitute()}")


def repair_message(problem: str) -> Message:
    """Sends a finding back, once; `problem` says what is wrong with it."""
    return Message(Role.USER, template("repair").substitute(problem=problem))


def nudge_message(*, tools: bool) -> Message:
    """Answers an empty answer; `tools`: whether the model may still call one."""
    return Message(Role.USER, template("nudge" if tools else "nudge_no_tools").substitute())


def repetition_message(*, tools: bool) -> Message:
    """Answers an answer that was cut because it repeated itself; `tools`: whether the model may still call one."""
    return Message(Role.USER, template("repetition" if tools else "repetition_no_tools").substitute())


def retry_message(error: str, partial: str) -> Message:
    """Tells a model that its last answer was lost; at most 2,000 characters of it (reference section 1.4)."""
    text = template("retry").substitute(error=error)
    return Message(Role.USER, f"{text}\n\n{fence('PARTIAL_ANSWER', partial[-2000:])}" if partial else text)


def cut_short_message(partial: str) -> Message:
    """Tells a model that its last answer was cut off to conclude; at most 2,000 characters of it."""
    text = template("cut_short").substitute()
    return Message(Role.USER, f"{text}\n\n{fence('PARTIAL_ANSWER', partial[-2000:])}")


def _general(name: str, **more: str) -> str:
    return template(name).substitute(
        evidence=template("evidence").substitute(), finding=template("finding").substitute(), **more
    )


def _conduct(agent: AgentPlan) -> str:
    """Whether it may change something: what its servers' policies let it have is not always all that it should use."""
    acts = any(server.policy is ToolPolicy.ALL for server in agent.servers)
    return template("conduct_act" if acts else "conduct_observe").substitute()


def _servers(unavailable: Mapping[str, str], instructions: Mapping[str, str]) -> list[str]:
    """Tier 2: what is said of each tool server, and which are missing."""
    tiers = [f"## Tool server {inline(name)}\n\n{text}" for name, text in instructions.items() if text.strip()]
    if unavailable:
        lines = "\n".join(f"- {inline(name)}: {inline(why, 500)}" for name, why in sorted(unavailable.items()))
        tiers.append(template("unavailable").substitute(servers=fence("UNAVAILABLE_SERVERS", lines)))
    return tiers


def _system(agent: AgentPlan, tiers: Sequence[str]) -> Message:
    """The tiers in order, the agent's name before them and its instructions after."""
    parts = [f"Agent: {inline(agent.name)}", *tiers]
    if agent.instructions.strip():
        parts.append(f"## Your instructions\n\n{agent.instructions.strip()}")
    return Message(Role.SYSTEM, "\n\n".join(parts))


def _user(sections: Sequence[str], task: str) -> Message:
    return Message(Role.USER, "\n\n".join([*sections, f"## Your task\n\n{task}"]))


def _alert_sections(task: Task) -> list[str]:
    sections = [f"## Alert\n\nType: {inline(task.alert_type)}\n\n{fence('ALERT_DATA', task.alert_data)}"]
    if task.runbook.strip():
        sections.append(f"## Runbook\n\n{fence('RUNBOOK', task.runbook)}")
    if context := chain_context(task.previous):
        sections.append(f"## What earlier stages concluded\n\n{context}")
    return sections
