"""Answers one question about an investigation that has ended: a run of its own, of one stage with one agent.

Only the prompts differ from an investigation: the strategies, the boundaries, the budget and the resume are those of an
investigation. Context is the whole investigation, with all that was asked before and what was done to answer it. The
question is the first event of the answer's timeline.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from tarsy.engine.investigation import restore_limits
from tarsy.engine.prompts.context import investigation_context, room_for_work
from tarsy.engine.run_context import RunContext
from tarsy.engine.stage import StageRun, run_stage
from tarsy.engine.task import ChatQuestion, Task
from tarsy.plan.model import Plan
from tarsy.record.approvals.provenance import Origin
from tarsy.record.ids import event_id, stage_id
from tarsy.record.run import RunOutcome, StageKind
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.work import PastWork


@dataclass(frozen=True, slots=True)
class ChatRun:
    """The input of an answer: its id, its plan (`Plan.to_answer`), the question, and the work and questions before.

    `via` is the program that asked in the name of the author, if any.
    """

    id: UUID
    plan: Plan
    author: str
    question: str
    past: PastWork
    via: str | None = None


async def answer_question(chat: ChatRun, world: RunContext) -> RunOutcome:
    """Answers the question; a failure is an outcome, not an exception.

    Raises:
        LeaseLost: another attempt owns the run.
        StoreError (and others of the recorder): the record cannot be written.
        RunWaits: the answer can go no further before something outside has happened.
    """
    plan, stage = chat.plan, chat.plan.stages[0]
    history = await world.recorder.history()
    asked = [chat.question, *(one.question for one in chat.past.earlier)]
    texts = [(Origin.PERSON, one) for one in asked]
    world = replace(restore_limits(chat.id, plan, history, world), prompt_texts=texts, skills=plan.skills)
    identity = stage_id(chat.id, 0)
    if identity not in history.stages:
        await world.recorder.write_events([_asked(chat)])
    window = stage.agents[0].provider.context_window or plan.limits.context_tokens
    question = ChatQuestion(chat.author, chat.question, investigation_context(chat.past, limit=room_for_work(window)))
    task = Task(plan.alert_type, "", "", (), stage.name, question=question)
    result = await run_stage(StageRun(identity, 0, StageKind.CHAT, stage, task, plan.limits), world)
    return RunOutcome(state=result.state, failure=result.failure, final_analysis=result.text or None)


def _asked(chat: ChatRun) -> Event:
    return Event(
        id=event_id(chat.id, "question"),
        type=EventType.USER_QUESTION,
        status=EventStatus.COMPLETED,
        content=chat.question,
        metadata={"author": chat.author} | ({} if chat.via is None else {"via": chat.via}),
    )
