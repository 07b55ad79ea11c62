"""Runs one agent execution: opens its tools, runs its strategy, records its outcome.

Failures of models and tools end an agent, never the process: they become its outcome and the stage's policy decides.
Exceptions that leave this module are a lost lease, a record that cannot be written, and cancellation.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tarsy.engine.agent_run import AgentResult, AgentRun
from tarsy.engine.conversation.state import Conversation
from tarsy.engine.findings.repair import checked_finding, marked, settle_finding
from tarsy.engine.limits.budget import BudgetSpent
from tarsy.engine.limits.budget_stop import (
    NO_CONCLUSION,
    concatenate_conclusions,
    cutoff_event,
    no_conclusion,
    partial_conclusion,
)
from tarsy.engine.model_calls.call import ModelCallFailed
from tarsy.engine.ports import Toolbox
from tarsy.engine.prompts import builder
from tarsy.engine.prompts.builder import PromptTools
from tarsy.engine.prompts.context import room_for_work, synthesis_context
from tarsy.engine.prompts.invisible import cleaned_events
from tarsy.engine.prompts.skills import skill_sections
from tarsy.engine.run_context import RunContext
from tarsy.engine.skills.agent_skills import AgentSkills
from tarsy.engine.skills.loading import skill_events
from tarsy.engine.skills.toolbox import SkillToolbox
from tarsy.engine.strategies.single_call import run_single_call
from tarsy.engine.strategies.table import STRATEGIES, tool_call_format
from tarsy.engine.strategies.tool_loop import Purpose, run_loop
from tarsy.engine.sub_agents.children import execution_start, open_children
from tarsy.engine.sub_agents.told import delegation_section
from tarsy.engine.sub_agents.tools import DelegatingToolbox
from tarsy.engine.sub_agents.verdict import verdict_event, weigh_verdict
from tarsy.engine.task import Task
from tarsy.engine.tool_calls.pinned_tools import hold_to_pins
from tarsy.record.ids import event_id
from tarsy.record.messages import Message
from tarsy.record.run import ExecutionOutcome, Failure, ModelCallKind, State
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.waiting import RunWaits


async def run_agent(run: AgentRun, world: RunContext) -> AgentResult:
    """Runs an agent to its end, or until it waits; returns what the record has of it when it is finished already."""
    agent, task = run.plan, run.task
    record = await world.recorder.begin_execution(execution_start(run))
    if record.state.finished:
        return AgentResult(run.id, record.state, record.result or "", record.failure, verdict=record.verdict)
    conversation = Conversation.resume(run.stage, agent, run.limits, record)
    conversation.acts = task.acts
    if conversation.loop.window is None and not conversation.loop.fallback:
        window = world.windows.get(agent.provider.ref)
        conversation.loop = conversation.loop.model_copy(update={"window": window})
    try:
        text = await _run_strategy(run, conversation, world)
    except RunWaits as waits:
        return AgentResult(run.id, State.PARKED, wait=waits.wait)
    except ModelCallFailed as error:
        return await _failed(world, conversation, task, error.state, error.failure)
    except BudgetSpent as spent:
        failure = Failure("BudgetExceeded", spent.exceeded.message)
        return await _cut_off(world, conversation, task, failure, str(spent))
    finally:
        world.meter.ended(run.id)
    if not text.strip():
        failure = Failure("EmptyAnswer", f"model {agent.provider.model} gave no answer")
        return await _failed(world, conversation, task, State.FAILED, failure)
    text = marked(conversation, text)
    if task.assignment is None or task.assignment.hypothesis is None:
        return await _close(world, conversation, AgentResult(run.id, State.COMPLETED, text))
    verdict = weigh_verdict(text, (await checked_finding(text, world))[0])
    result = AgentResult(run.id, State.COMPLETED, text, verdict=verdict)
    return await _close(world, conversation, result, verdict_event(conversation, task.assignment.hypothesis, verdict))


async def _run_strategy(run: AgentRun, conversation: Conversation, world: RunContext) -> str:
    """The final answer, its finding sent back where it is the run's and cannot be used."""
    task = run.task
    if STRATEGIES[conversation.agent.strategy].tool_calls is not None:
        return await _run_with_tools(run, conversation, world)
    text = conversation.loop.final_answer or await _run_single(conversation, task, world)
    return await _settled(conversation, text, task, world)


async def _settled(
    conversation: Conversation, text: str, task: Task, world: RunContext, toolbox: Toolbox | None = None
) -> str:
    if not text.strip() or not task.finds(concluding=world.concluding):
        return text
    return await settle_finding(conversation, text, world, toolbox)


async def _run_single(conversation: Conversation, task: Task, world: RunContext) -> str:
    agent, began = conversation.agent, conversation.began
    if task.summarise is not None:
        opening = builder.summary_messages(agent, task.summarise)
        return await run_single_call(conversation, ModelCallKind.EXECUTIVE_SUMMARY, opening, world)
    if task.synthesise is not None:
        window = agent.provider.context_window or conversation.limits.context_tokens
        window = min(window, conversation.loop.window or window)
        timelines = await world.recorder.stage_timeline(task.synthesise)
        work = synthesis_context(task.agents, timelines, limit=room_for_work(window))
        opening = builder.synthesis_messages(agent, task, began, work)
        return await run_single_call(conversation, ModelCallKind.SYNTHESIS, opening, world)
    await _report_cleaned(conversation, task, (), world)
    skills = AgentSkills.of(conversation.plan, world.skills)
    await _report_skills(conversation, skills, world)
    opening = _opening(conversation, task, PromptTools(skills=skill_sections(skills, tools=False), present=False))
    return await run_single_call(conversation, ModelCallKind.ITERATION, opening, world)


async def _run_with_tools(run: AgentRun, conversation: Conversation, world: RunContext) -> str:
    agent, task = conversation.agent, run.task
    async with (
        world.toolboxes.open(agent.servers) as servers,
        open_children(run, conversation, world, run_agent) as subs,
    ):
        await hold_to_pins(conversation, servers, world)
        told = await _report_missing(conversation, servers, world)
        delegation = run.plan.delegation if subs is not None else None
        instructions = builder.server_instructions(agent, servers.instructions)
        skills = AgentSkills.of(conversation.plan, world.skills)
        toolbox: Toolbox = SkillToolbox(servers, skills) if conversation.plan.skills else servers
        toolbox = toolbox if delegation is None else DelegatingToolbox(toolbox, delegation)
        sections = list(tool_call_format(agent.strategy, toolbox).sections)
        tools = bool(servers.tools) or delegation is not None
        if delegation is not None:
            sections.append(delegation_section(delegation))
        await _report_cleaned(conversation, task, toolbox.instructions.values(), world)
        await _report_skills(conversation, skills, world)
        told_of = PromptTools(toolbox.unavailable, instructions, sections, skill_sections(skills), tools)
        opening = _opening(conversation, task, told_of)
        try:
            purpose = Purpose(evidence=task.question is None and not task.acts, earlier=bool(task.previous))
            text = conversation.loop.final_answer or await run_loop(
                conversation, opening, toolbox, world, purpose, subs
            )
            text = await _settled(conversation, text, task, world, toolbox)
        except (ModelCallFailed, BudgetSpent):
            await _report_missing(conversation, toolbox, world, told)
            raise
        await _report_missing(conversation, toolbox, world, told)
        return text


def _opening(conversation: Conversation, task: Task, tools: PromptTools) -> tuple[Message, ...]:
    """The first messages of an agent that investigates, or answers a question about an investigation."""
    agent, began = conversation.agent, conversation.began
    if task.question is not None:
        return builder.chat_messages(agent, task.question, began, tools)
    if task.assignment is not None:
        return builder.assignment_messages(agent, task.assignment, began, tools)
    return builder.investigation_messages(agent, task, began, tools)


async def _report_skills(conversation: Conversation, skills: AgentSkills, world: RunContext) -> None:
    """Reports the skills in the prompt of an agent, once."""
    if skills.required and not conversation.messages:
        await world.recorder.write_events(skill_events(conversation, skills.required))


async def _report_cleaned(
    conversation: Conversation, task: Task, instructions: Iterable[str], world: RunContext
) -> None:
    """Reports invisible characters in what an agent begins with, once."""
    if conversation.messages:
        return
    question = "" if task.question is None else task.question.text
    assigned = "" if task.assignment is None else f"{task.assignment.task}\n{task.assignment.hypothesis or ''}"
    texts = [task.alert_data, task.runbook, question, assigned, *instructions]
    events = cleaned_events(conversation, "alert, runbook, question or instructions of tool servers", texts)
    if events:
        await world.recorder.write_events(events)


async def _report_missing(
    conversation: Conversation, toolbox: Toolbox, world: RunContext, told: Mapping[str, str] = MappingProxyType({})
) -> Mapping[str, str]:
    """Reports missing tool servers once: a degraded run must never look like a complete one.

    Args:
        conversation: of the agent.
        toolbox: with the servers that are unavailable.
        world: the run's ports.
        told: the servers reported before, with their reasons; only new ones are reported.
    """
    missing = {name: why for name, why in toolbox.unavailable.items() if told.get(name) != why}
    if missing:
        await world.recorder.degrade_evidence(missing)
        await world.recorder.write_events(
            [
                Event(
                    id=event_id(conversation.execution, f"unavailable/{name}"),
                    type=EventType.ERROR,
                    status=EventStatus.COMPLETED,
                    content=f"Tool server {name} is not available: {reason}",
                    metadata={"server": name},
                    stage=conversation.stage,
                    execution=conversation.execution,
                )
                for name, reason in sorted(missing.items())
            ]
        )
    return missing


async def _failed(
    world: RunContext, conversation: Conversation, task: Task, state: State, failure: Failure
) -> AgentResult:
    """Ends an agent whose model gave no answer: a run that was asked to conclude ends with what is known."""
    if not world.control.concluding:
        return await _close(world, conversation, AgentResult(conversation.execution, state, failure=failure))
    told = Event(
        id=event_id(conversation.execution, "no-conclusion"),
        type=EventType.ERROR,
        status=EventStatus.COMPLETED,
        content=failure.message,
        metadata={"reason": failure.reason},
        stage=conversation.stage,
        execution=conversation.execution,
    )
    await world.recorder.write_events([told])
    instead = Failure(NO_CONCLUSION, no_conclusion(failure))
    return await _cut_off(world, conversation, task, instead, instead.message)


async def _cut_off(
    world: RunContext, conversation: Conversation, task: Task, failure: Failure, why: str
) -> AgentResult:
    """Ends an agent without asking its model: with what is on record, or, where nothing hangs on it, with nothing."""
    identity = conversation.execution
    if task.summarise is not None:
        return await _close(world, conversation, AgentResult(identity, State.FAILED, failure=failure))
    if task.synthesise is not None:
        text = concatenate_conclusions(task.agents, await world.recorder.stage_timeline(task.synthesise), why)
    else:
        text = partial_conclusion(conversation, why)
    event = cutoff_event(conversation, text, failure.reason)
    return await _close(world, conversation, AgentResult(identity, State.COMPLETED, text), event)


async def _close(world: RunContext, conversation: Conversation, result: AgentResult, *told: Event) -> AgentResult:
    events = list(told)
    if result.failure:
        events.append(
            Event(
                id=event_id(conversation.execution, "failure"),
                type=EventType.ERROR,
                status=EventStatus.COMPLETED,
                content=result.failure.message,
                metadata={"reason": result.failure.reason},
                stage=conversation.stage,
                execution=conversation.execution,
            )
        )
    outcome = ExecutionOutcome(result.execution, result.state, result.text or None, result.failure, result.verdict)
    await world.recorder.finish_execution(outcome, events)
    return result
