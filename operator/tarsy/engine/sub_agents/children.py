"""Runs the sub-agents of one agent in one attempt, and hands their results to it.

The parent's loop state lists the dispatches, so this attempt begins those whose results were not told and finds them as
the record has them: one that is finished is not run again. A sub-agent is an ordinary execution of the stage. It shares
the budget, the control and the record of the run, its end is a result whatever it is, and it is a task of a group that
ends before its parent does.

Results become messages before the next call of the parent's model, with the boundary that begins that call. An agent
that gives an answer while results are missing waits for the next one; before it is made to conclude, it waits for all.
What waits for people parks the run, when nothing else is left to do.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

from tarsy.engine.agent_run import AgentResult, AgentRun
from tarsy.engine.conversation.state import CallModel, CallTool, Conversation
from tarsy.engine.limits.budget import BudgetSpent
from tarsy.engine.model_calls.call import ModelCallFailed
from tarsy.engine.run_context import RunContext
from tarsy.engine.skills.agent_skills import AgentSkills, skill_refusal
from tarsy.engine.sub_agents.requests import NotDispatched, decide_dispatch, numbered, sub_agent_id
from tarsy.engine.sub_agents.told import cancelled_event_text, dispatched_text, result_message, withdrawn_text
from tarsy.engine.sub_agents.verdict import no_verdict
from tarsy.engine.task import Assignment
from tarsy.engine.tool_calls.approval import withdraw_requests
from tarsy.engine.tool_calls.gate import ToolCallDecision
from tarsy.mcp.arguments.cascade import parse_arguments
from tarsy.plan.model import DelegationPlan
from tarsy.record.approvals.provenance import ToldResult
from tarsy.record.dispatch import CANCEL_AGENT, DISPATCH_AGENT, Dispatch, child_index
from tarsy.record.ids import call_ref, event_id, execution_id, idempotency_key
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.messages import Message, ToolOutcome
from tarsy.record.run import ExecutionOutcome, ExecutionStart, Failure, ModelCallKind, State
from tarsy.record.waiting import RunWaits

RunAgent = Callable[[AgentRun, RunContext], Awaitable[AgentResult]]
"""Runs an agent to its end (`tarsy.engine.agent.run_agent`)."""


class Children:
    """The sub-agents of one agent.

    Args:
        parent: the agent.
        delegation: what it may dispatch.
        conversation: of the agent.
        world: the run's ports.
        group: owns the tasks.
        run: runs a sub-agent.
    """

    def __init__(
        self,
        parent: AgentRun,
        delegation: DelegationPlan,
        conversation: Conversation,
        world: RunContext,
        group: asyncio.TaskGroup,
        run: RunAgent,
    ) -> None:
        self._parent = parent
        self._delegation = delegation
        self._conversation = conversation
        self._world = world
        self._group = group
        self._run = run
        self._slots = asyncio.Semaphore(delegation.concurrent)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._results: dict[int, AgentResult] = {}
        self._begun: set[int] = set()
        self._cancelled: set[int] = set()

    def start(self) -> None:
        """Starts the sub-agents that are on record as dispatched, not told, and not started by this attempt."""
        for number, dispatch in enumerate(self._dispatches, 1):
            if not dispatch.told and number not in self._tasks:
                name = sub_agent_id(self._dispatches, number)
                self._tasks[number] = self._group.create_task(self._work(number, dispatch), name=name)

    async def answer(self, turn: CallTool) -> ToolCallDecision:
        """See `tarsy.engine.sub_agents.answers.Answers`."""
        if turn.call.name == DISPATCH_AGENT:
            return self._dispatch(turn)
        if turn.call.name == CANCEL_AGENT:
            return await self._cancel(turn)
        return _answered(self._listed())

    async def _cancel(self, turn: CallTool) -> ToolCallDecision:
        """Cancels a sub-agent; one that has ended stays as it ended, and its result is still told."""
        identity = str(parse_arguments(turn.call.arguments, {}).get("id") or "")
        number = numbered(self._dispatches, identity)
        if number is None:
            return _answered("There is no such sub-agent; list_agents names them.", error=True)
        if self._dispatches[number - 1].told or (number in self._results and self._results[number].wait is None):
            return _answered(f"{sub_agent_id(self._dispatches, number)} has ended already.")
        self._cancelled.add(number)
        await self._stop(number)
        self._put(number, told=True)
        return _answered(f"{sub_agent_id(self._dispatches, number)} is cancelled.")

    async def wait_for_one(self) -> None:
        """Waits until a result that was not told is there.

        Raises:
            RunWaits: all that are missing wait for something outside.
        """
        while not self._ready():
            running = [self._tasks[number] for number in self._open() if number not in self._results]
            if not running:
                raise self._waits()
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    async def before_call(self, turn: CallModel) -> CallModel:
        """Returns a model call with the results that have come as messages; before a forced conclusion with all.

        Raises:
            RunWaits: a result that is waited for waits for something outside.
        """
        if turn.kind is ModelCallKind.FORCED_CONCLUSION:
            await self._wait_for_all()
        ready = self._ready()
        if not ready:
            return turn
        dispatches = tuple(
            one.model_copy(update={"told": True}) if number in ready else one
            for number, one in enumerate(turn.loop.dispatches, 1)
        )
        told = tuple(self._told(number) for number in ready)
        loop = turn.loop.model_copy(update={"dispatches": dispatches})
        return replace(turn, new_messages=(*told, *turn.new_messages), loop=loop)

    async def settle(self) -> RunWaits | None:
        """Waits until every sub-agent has ended or waits too; returns what the first of them waits for."""
        running = [task for task in self._tasks.values() if not task.done()]
        if running:
            await asyncio.wait(running)
        return self._waits() if any(one.wait is not None for one in self._results.values()) else None

    async def stop_all(self) -> None:
        """Cancels the sub-agents of a parent that failed."""
        for number in self._open():
            if number not in self._results or self._results[number].wait is not None:
                self._cancelled.add(number)
                await self._stop(number)

    @property
    def _dispatches(self) -> tuple[Dispatch, ...]:
        return self._conversation.loop.dispatches

    def _dispatch(self, turn: CallTool) -> ToolCallDecision:
        skills = AgentSkills.of(self._conversation.plan, self._world.skills)
        in_use = skills.in_use(self._conversation.loop, before=turn.message_seq)
        if (narrowed := skill_refusal(in_use, DISPATCH_AGENT)) is not None:
            # Else a skill that narrows the tools of this agent would leave it those of others.
            return _answered(narrowed.sentence, error=True, refused=narrowed.reason)
        key = UUID(idempotency_key(self._conversation.execution, turn.message_seq, turn.index))
        found = decide_dispatch(self._delegation, self._dispatches, turn.call.arguments, key)
        if isinstance(found, NotDispatched):
            return _answered(found.sentence, error=True, refused=found.reason)
        dispatches = (*self._dispatches, found)
        self._conversation.loop = self._conversation.loop.model_copy(update={"dispatches": dispatches})
        number = len(dispatches)
        known = {"sub_agent": sub_agent_id(dispatches, number), "dispatched": str(self._execution(number))}
        if found.hypothesis is not None:
            known["hypothesis"] = found.hypothesis
        return _answered(dispatched_text(sub_agent_id(dispatches, number)), known=known)

    def _listed(self) -> str:
        left = self._delegation.dispatches - len(self._dispatches)
        lines = [f"{left} of {self._delegation.dispatches} dispatches are left."]
        for one in self._delegation.agents:
            used = sum(dispatch.agent == one.agent.agent for dispatch in self._dispatches)
            lines.append(f"- {one.agent.agent}: dispatched {used} times of at most {one.max_dispatches}")
        for number, dispatch in enumerate(self._dispatches, 1):
            lines.append(f"- {sub_agent_id(self._dispatches, number)}: {self._state(number, dispatch)}")
        return "\n".join(lines)

    def _state(self, number: int, dispatch: Dispatch) -> str:
        result = self._results.get(number)
        if dispatch.told:
            return "ended, and told"
        if result is not None:
            return "waits" if result.wait is not None else "ended; its conclusion comes with the next message"
        return "at work" if number in self._begun else "waits for its turn"

    def _execution(self, number: int) -> UUID:
        return execution_id(self._parent.stage, child_index(self._parent.index, number))

    def _put(self, number: int, *, told: bool) -> None:
        changed = list(self._dispatches)
        changed[number - 1] = changed[number - 1].model_copy(update={"told": told})
        self._conversation.loop = self._conversation.loop.model_copy(update={"dispatches": tuple(changed)})

    def _open(self) -> list[int]:
        return [number for number, one in enumerate(self._dispatches, 1) if not one.told and number in self._tasks]

    def _ready(self) -> list[int]:
        return [n for n in self._open() if n in self._results and self._results[n].wait is None]

    def _waits(self) -> RunWaits:
        waits = [result.wait for result in self._results.values() if result.wait is not None]
        return RunWaits(min(waits, key=lambda wait: wait.until))

    async def _wait_for_all(self) -> None:
        running = [self._tasks[number] for number in self._open() if number not in self._results]
        if running:
            await asyncio.wait(running)
        if any(self._results[number].wait is not None for number in self._open()):
            raise self._waits()

    def _told(self, number: int) -> Message:
        dispatch, result = self._dispatches[number - 1], self._results[number]
        identity, verdict = sub_agent_id(self._dispatches, number), result.verdict
        if verdict is None and dispatch.hypothesis is not None:
            verdict = no_verdict("the agent came to no conclusion")
        return result_message(identity, dispatch, result.state, result.text, result.failure, verdict)

    def _child(self, number: int, dispatch: Dispatch) -> AgentRun:
        plan = next(one.agent for one in self._delegation.agents if one.agent.agent == dispatch.agent)
        name = sub_agent_id(self._dispatches, number)
        return AgentRun(
            id=self._execution(number),
            stage=self._parent.stage,
            index=child_index(self._parent.index, number),
            plan=plan.model_copy(update={"name": name}),
            task=self._parent.task.to_assign(Assignment(dispatch.task, dispatch.hypothesis)),
            limits=self._parent.limits,
            parent=self._parent.id,
            dispatched_by=dispatch.call,
        )

    async def _work(self, number: int, dispatch: Dispatch) -> None:
        """Runs a sub-agent when there is a place for it; a cancellation that its parent wants is an end like others."""
        child = self._child(number, dispatch)
        # The task is the word of a model: a destination that only stands there is not trusted, however it is written.
        text = f"{dispatch.task}\n{dispatch.hypothesis or ''}"
        marks = EvidenceMarks(integrity=Integrity.X)
        told = ToldResult(
            event_id(dispatch.call, "task"), call_ref(str(dispatch.call)), DISPATCH_AGENT, "", text, marks
        )
        world = replace(self._world, assigned=(told,))
        try:
            async with self._slots:
                self._begun.add(number)
                if self._world.concluding and await self._is_new(child):
                    result = await self._end(child, "NotStarted", "It was not started, because the run concludes.")
                else:
                    result = await self._run(child, world)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if number not in self._cancelled or task is None or task.uncancel() > 0:
                raise
            result = await self._end_cancelled(child)
        self._results[number] = result

    async def _is_new(self, child: AgentRun) -> bool:
        """Begins the execution of a sub-agent; whether no attempt has begun it before and asked its model."""
        record = await self._world.recorder.begin_execution(execution_start(child))
        return not record.state.finished and not record.messages

    async def _end_cancelled(self, child: AgentRun) -> AgentResult:
        """Ends a sub-agent that its parent cancelled; its requests end first, so that no attempt forgets them."""
        record = await self._world.recorder.begin_execution(execution_start(child))
        conversation = Conversation.resume(child.stage, child.plan, child.limits, record)
        await withdraw_requests(conversation, withdrawn_text(child.plan.name), self._world)
        return await self._end(child, "CancelledByParent", cancelled_event_text(child.plan.name))

    async def _end(self, child: AgentRun, reason: str, message: str) -> AgentResult:
        verdict = (
            None if child.task.assignment is None or child.task.assignment.hypothesis is None else no_verdict(message)
        )
        result = AgentResult(child.id, State.CANCELLED, failure=Failure(reason, message), verdict=verdict)
        outcome = ExecutionOutcome(child.id, result.state, None, result.failure, verdict)
        await self._world.recorder.finish_execution(outcome)
        return result

    async def _stop(self, number: int) -> None:
        """Cancels the task of a sub-agent, or ends one that waits, and returns when that is on record."""
        task = self._tasks[number]
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        result = self._results.get(number)
        if result is None or result.wait is not None:  # it had not begun, or waits
            self._results[number] = await self._end_cancelled(self._child(number, self._dispatches[number - 1]))


def execution_start(run: AgentRun) -> ExecutionStart:
    """Returns the row that an agent execution begins with."""
    agent, assignment = run.plan, run.task.assignment
    return ExecutionStart(
        id=run.id,
        stage=run.stage,
        index=run.index,
        agent=agent.agent,
        display_name=agent.name,
        strategy=agent.strategy.value,
        provider=agent.provider.ref.name,
        model=agent.provider.model,
        parent=run.parent,
        dispatched_by=run.dispatched_by,
        task=assignment.task if assignment is not None else None,
        hypothesis=assignment.hypothesis if assignment is not None else None,
    )


@asynccontextmanager
async def open_children(
    parent: AgentRun, conversation: Conversation, world: RunContext, run: RunAgent
) -> AsyncIterator[Children | None]:
    """Runs the sub-agents of an agent until the block ends; None for an agent that may dispatch nobody.

    The block ends with the exceptions of the agent itself, once its sub-agents have ended: those of an agent that
    waits go on, those of one that failed are cancelled.
    """
    delegation = parent.plan.delegation
    if delegation is None or parent.parent is not None:  # a sub-agent dispatches nobody, whatever its plan says
        yield None
        return
    raised: RunWaits | ModelCallFailed | BudgetSpent | None = None
    async with asyncio.TaskGroup() as group:
        children = Children(parent, delegation, conversation, world, group, run)
        children.start()
        try:
            yield children
        except RunWaits as waits:
            other = await children.settle()
            raised = waits if other is None else min(waits, other, key=lambda one: one.wait.until)
        except (ModelCallFailed, BudgetSpent) as failed:
            await children.stop_all()
            raised = failed
    if raised is not None:
        raise raised


def _answered(
    text: str, *, error: bool = False, refused: str | None = None, known: Mapping[str, str] = MappingProxyType({})
) -> ToolCallDecision:
    metadata = {"made": False, **known, **({"refused": refused} if refused else {})}
    return ToolCallDecision(instead=ToolOutcome(text, is_error=error, ours=True), refused=refused, metadata=metadata)
