"""Builds the messages an agent starts with.

Both messages put first what agents share and last what only one agent has, so that a server's prompt cache holds for
the whole run: two agents with the same tools have the same system message, and their user messages differ from the name
on. Chat templates put tools behind the system message, so a name in it would cost the tools as well.

The tiers of instructions keep their order: 1 the general rules, 2 the tool servers and those that are missing, skills,
then what the strategy needs, all in the system message. The user message contains what is known,
then tier 0, the agent's name and the calendar, tier 3, the agent's own instructions, and the task. What a later tier
brings (memories) is one more text in those lists. Everything from outside stands in a fence, or on one line where it is
a name; own instructions and skills stand outside of all fences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tarsy.engine.prompts.calendar import calendar
from tarsy.engine.prompts.context import chain_context
from tarsy.engine.prompts.fence import ALERT_FENCE, fence, inline
from tarsy.engine.prompts.precedents import precedents_section
from tarsy.engine.prompts.template import template
from tarsy.engine.task import Assignment, ChatQuestion, Task
from tarsy.plan.model import AgentPlan
from tarsy.plan.policy import ToolPolicy
from tarsy.record.messages import Message, Role

_LISTED_TOOLS = 20
"""Names of tools in a sentence; a longer list says how many there are besides."""


@dataclass(frozen=True, slots=True)
class PromptTools:
    """Holds the parts of an agent's system message about its tools and its strategy.

    Args:
        unavailable: tool servers that could not be opened, name to reason.
        instructions: instructions for each tool server, by name.
        sections: texts that the strategy adds.
        skills: sections about skills (`tarsy.engine.prompts.skills`).
        present: whether the agent has any tool.
    """

    unavailable: Mapping[str, str] = field(default_factory=dict)
    instructions: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[str] = ()
    skills: Sequence[str] = ()
    present: bool = True

    def texts(self) -> list[str]:
        """Returns them in the order of the message."""
        return [*_servers(self.unavailable, self.instructions), *self.skills, *self.sections]


def investigation_messages(
    agent: AgentPlan,
    task: Task,
    now: datetime,
    tools: PromptTools,
) -> tuple[Message, ...]:
    """System and user message of an agent of a stage, which investigates, or acts on what earlier stages found.

    Args:
        agent: as planned.
        task: what to investigate or to act on.
        now: when the execution began, as recorded.
        tools: what the agent is told about its tools.
    """
    if task.acts:
        act = template("action_tools" if tools.present else "action_no_tools").substitute()
        asked = template("action_task").substitute(stage=inline(task.stage_name), act=act)
        rules = template("action").substitute(look=_look(tools.present), evidence=template("evidence").substitute())
    else:
        asked = template("task").substitute(stage=inline(task.stage_name), act=_act(tools.present))
        rules = _look_rules(agent, tools.present)
    told = [rules, *tools.texts()]
    return (_system(told), _user(agent, now, _alert_sections(task), asked))


def assignment_messages(
    agent: AgentPlan,
    assignment: Assignment,
    now: datetime,
    tools: PromptTools,
) -> tuple[Message, ...]:
    """Returns the system and user message of a sub-agent, which sees its task only.

    Args:
        agent: as planned.
        assignment: what it is asked.
        now: when the execution began, as recorded.
        tools: what the agent is told about its tools.
    """
    told = [f"## Task\n\n{fence('TASK', assignment.task)}"]
    asked = template("assignment").substitute(act=_act(tools.present))
    if assignment.hypothesis is not None:
        told.append(f"## Hypothesis\n\n{fence('HYPOTHESIS', assignment.hypothesis)}")
        asked = f"{asked}\n{template('assignment_hypothesis').substitute()}"
    rules = [_look_rules(agent, tools.present), *tools.texts()]
    return (_system(rules), _user(agent, now, told, asked))


def synthesis_messages(agent: AgentPlan, task: Task, now: datetime, context: str) -> tuple[Message, ...]:
    """System and user message of a synthesising agent; `context` is all that the stage's agents did."""
    sections = [*_alert_sections(task), f"## Investigations to combine\n\n{context}"]
    asked = template("synthesis_task").substitute(count=len(task.agents))
    return (_system([_general("synthesis")]), _user(agent, now, sections, asked))


def chat_messages(
    agent: AgentPlan,
    question: ChatQuestion,
    now: datetime,
    tools: PromptTools,
) -> tuple[Message, ...]:
    """Returns the system and user message of an agent that answers a question about an investigation.

    Args:
        agent: as planned.
        question: the question, its author and the history of the investigation.
        now: when the execution began, as recorded.
        tools: what the agent is told about its tools.
    """
    told = [f"## History of the investigation\n\n{question.history}"]
    asked = template("chat_task").substitute(author=inline(question.author))
    look = template("chat_tools" if tools.present else "chat_no_tools").substitute()
    evidence = template("evidence").substitute()
    rules = template("chat").substitute(evidence=evidence, look=look, conduct=_conduct(agent))
    return (
        _system([rules, *tools.texts()]),
        _user(agent, now, told, f"{asked}\n\n{fence('QUESTION', question.text)}"),
    )


def summary_messages(agent: AgentPlan, analysis: str) -> tuple[Message, ...]:
    """System and user message of the executive summary."""
    asked = template("executive_summary_task").substitute()
    sections = [f"## Final analysis\n\n{fence('ANALYSIS', analysis)}"]
    return (_system([template("executive_summary").substitute()]), _user(agent, None, sections, asked))


def server_instructions(agent: AgentPlan, own: Mapping[str, str]) -> dict[str, str]:
    """Renders the instructions for each tool server: those of the plan, and, as data, the server's own."""
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


def repair_message(problem: str, *, tools: bool = False) -> Message:
    """Sends a finding back, once; `problem` says what is wrong with it, `tools` whether the model may call one."""
    told = f" {template('repair_tools').substitute()}" if tools else ""
    return Message(Role.USER, template("repair").substitute(problem=problem, tools=told))


def no_evidence_message(tools: Sequence[str], how: str) -> Message:
    """Sends a final answer back that was given before any tool was called.

    Args:
        tools: names of the tools that the agent has.
        how: how the strategy calls one.
    """
    count = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    return Message(Role.USER, template("no_evidence").substitute(count=count, tools=_listed(tools), how=how))


def call_as_text_message(why: str, tools: Sequence[str]) -> Message:
    """Answers text that has the shape of a tool call; `why` says, as a clause, why it was not made."""
    return Message(Role.USER, template("call_as_text").substitute(why=why, tools=_listed(tools)))


def _listed(tools: Sequence[str]) -> str:
    """The names of tools in a sentence."""
    names = ", ".join(inline(name) for name in tools[:_LISTED_TOOLS])
    more = len(tools) - _LISTED_TOOLS
    return f"{names} and {more} more" if more > 0 else names


def nudge_message(*, tools: bool) -> Message:
    """Answers an empty answer; `tools`: whether the model may still call one."""
    return Message(Role.USER, template("nudge" if tools else "nudge_no_tools").substitute())


def repetition_message(*, tools: bool) -> Message:
    """Answers an answer that was cut because it repeated itself; `tools`: whether the model may still call one."""
    return Message(Role.USER, template("repetition" if tools else "repetition_no_tools").substitute())


def retry_message(error: str, partial: str) -> Message:
    """Tells a model that its last answer was lost; at most 2,000 characters of it."""
    text = template("retry").substitute(error=error)
    return Message(Role.USER, f"{text}\n\n{fence('PARTIAL_ANSWER', partial[-2000:])}" if partial else text)


def cut_short_message(partial: str) -> Message:
    """Tells a model that its last answer was cut off to conclude; at most 2,000 characters of it."""
    text = template("cut_short").substitute()
    return Message(Role.USER, f"{text}\n\n{fence('PARTIAL_ANSWER', partial[-2000:])}")


def _general(name: str, **more: str) -> str:
    finding = template("finding").substitute(
        steps=template("next_steps").substitute(), examples=template("examples").substitute()
    )
    return template(name).substitute(evidence=template("evidence").substitute(), finding=finding, **more)


def _look_rules(agent: AgentPlan, tools: bool) -> str:
    """Tier 1 of an agent that investigates, with tools or without."""
    return _general("general", look=_look(tools), conduct=_conduct(agent))


def _look(tools: bool) -> str:
    """Renders the instructions for the investigation, with tools or without."""
    return template("look_tools" if tools else "look_no_tools").substitute()


def _act(tools: bool) -> str:
    """Renders the opening request to an agent that investigates."""
    return template("task_tools" if tools else "task_no_tools").substitute()


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


def _system(tiers: Sequence[str]) -> Message:
    """The tiers that agents share, in order."""
    return Message(Role.SYSTEM, "\n\n".join(tiers))


def _user(agent: AgentPlan, now: datetime | None, sections: Sequence[str], task: str) -> Message:
    """Renders the known facts, then the parts of this agent alone: its name, the time, its instructions and its
    task."""
    parts = [*sections, f"## You\n\nAgent: {inline(agent.name)}"]
    if now is not None:
        parts.append(calendar(now))
    if agent.instructions.strip():
        parts.append(f"## Your instructions\n\n{agent.instructions.strip()}")
    return Message(Role.USER, "\n\n".join([*parts, f"## Your task\n\n{task}"]))


def _alert_sections(task: Task) -> list[str]:
    sections = [f"## Alert\n\nType: {inline(task.alert_type)}\n\n{fence(ALERT_FENCE, task.alert_data)}"]
    if task.runbook.strip():
        sections.append(f"## Runbook\n\n{fence('RUNBOOK', task.runbook)}")
    if task.precedents:
        sections.append(precedents_section(task.precedents))
    if context := chain_context(task.previous):
        sections.append(f"## What earlier stages concluded\n\n{context}")
    return sections
