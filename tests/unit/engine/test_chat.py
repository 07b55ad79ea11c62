"""Answers to questions (seeds 000 and 004, chat): one agent that knows the whole investigation and what was asked."""

from dataclasses import replace

from tarsy.engine.chat import ChatRun, answer_question
from tarsy.engine.run_context import RunContext
from tarsy.plan.model import Plan, PlannedBudget, Strategy
from tarsy.record.ids import event_id
from tarsy.record.messages import Role
from tarsy.record.run import Failure, RunOutcome, StageKind, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.work import AgentWork, Exchange, PastWork, StageWork
from unit.engine.build import (
    RUN,
    Brain,
    FakeControl,
    FakeToolboxes,
    ScriptedModels,
    agent,
    by_turn,
    call,
    plan,
    says,
    stage,
)
from unit.engine.memory import Crash, MemoryRecorder, Record
from wire.scripted_client import Answer

LOOKED = AgentWork(
    event_id(RUN, "looked"), "triage", "langchain", "scripted", State.FAILED, Failure("ModelTimeout", "too slow")
)
SEEN = TimelineEvent(
    id=event_id(RUN, "seen"),
    type=EventType.LLM_TOOL_CALL,
    status=EventStatus.COMPLETED,
    content="/dev/sda1 is full",
    metadata={"name": "k.df", "arguments": "{}", "call_id": "call_0123"},
    execution=LOOKED.execution,
)
PAST = PastWork(
    (StageWork("look", (LOOKED,)),), {LOOKED.execution: (SEEN,)}, (Exchange("Which disk?", "The one of node-1."),)
)
PLAN = plan(stage("look", agent())).model_copy(
    update={"chat": agent("chat-agent", servers=("k",)), "chat_budget": PlannedBudget(tool_calls=1)}
)


class Conversation:
    """A chat over a record in memory."""

    def __init__(self, brain: Brain, of: Plan = PLAN) -> None:
        self.models = ScriptedModels(brain)
        self.boxes = FakeToolboxes({"k.df": says("still full")}, repeatables=frozenset({"k.df"}))
        self.record = Record()
        self.chat = ChatRun(RUN, of.to_answer(), "ada", "Is it still full?", PAST)

    async def ask(self, *, die_at: int | None = None, concluding: bool = False) -> RunOutcome | None:
        recorder = MemoryRecorder(self.record, die_at=die_at)
        try:
            return await answer_question(
                self.chat, RunContext(recorder, self.models, self.boxes, FakeControl(concluding=concluding))
            )
        except Crash:
            return None
        except BaseExceptionGroup as group:
            assert group.subgroup(Crash) is not None, group
            return None

    def opening(self) -> str:
        return "\n".join(message.content for message in self.models.requests[0].messages)


LOOKS = {"chat-agent": [Answer("I look.", tool_calls=(call("k.df"),)), Answer("Yes, still full.")]}


async def test_an_answer_knows_the_investigation_and_what_was_asked_before() -> None:
    talk = Conversation(by_turn(LOOKS))
    outcome = await talk.ask()
    assert outcome == RunOutcome(State.COMPLETED, final_analysis="Yes, still full.")
    told = talk.opening()
    for part in (
        "/dev/sda1 is full",
        "call_0123",
        "too slow",
        "Which disk?",
        "The one of node-1.",
        "Is it still full?",
    ):
        assert part in told
    assert "ada" in told
    assert [box[0] for box in talk.boxes.called] == ["k.df"]


async def test_the_question_is_the_first_event_and_the_stage_is_one_of_chat() -> None:
    talk = Conversation(by_turn(LOOKS))
    await talk.ask()
    events = sorted(talk.record.events.values(), key=lambda event: event.seq)
    assert (events[0].type, events[0].content) == (EventType.USER_QUESTION, "Is it still full?")
    assert events[0].metadata == {"author": "ada"}
    slack = Conversation(by_turn(LOOKS))
    slack.chat = replace(slack.chat, via="Slack")
    await slack.ask()
    first = min(slack.record.events.values(), key=lambda event: event.seq)
    assert first.metadata == {"author": "ada", "via": "Slack"}
    assert [row.start.kind for row in talk.record.stages.values()] == [StageKind.CHAT]
    assert sum(event.type is EventType.FINAL_ANALYSIS for event in events) == 1


async def test_a_death_at_any_step_gives_the_same_answer_and_one_question() -> None:
    for die_at in range(20):
        talk = Conversation(by_turn(LOOKS))
        await talk.ask(die_at=die_at)
        outcome = await talk.ask()
        assert outcome is not None
        assert outcome.final_analysis == "Yes, still full."
        assert sum(event.type is EventType.USER_QUESTION for event in talk.record.events.values()) == 1


async def test_an_answer_has_a_budget_of_its_own() -> None:
    twice = [Answer(tool_calls=(call("k.df", f"c{n}", f'{{"n": {n}}}'),)) for n in range(3)]
    talk = Conversation(by_turn({"chat-agent": [*twice, Answer("Enough.")]}))
    outcome = await talk.ask()
    assert outcome is not None and outcome.state is State.COMPLETED
    assert len(talk.boxes.called) == 1
    assert talk.record.exceeded is not None


async def test_a_question_that_is_to_conclude_is_answered_from_what_is_known() -> None:
    talk = Conversation({"chat-agent": [Answer("As far as I know, yes.")]})
    outcome = await talk.ask(concluding=True)
    assert outcome is not None and outcome.final_analysis == "As far as I know, yes."
    last = talk.models.requests[0].messages[-1]
    assert last.role is Role.USER and "stop investigating" in last.content
    assert not talk.models.requests[0].offers_tools


async def test_an_agent_without_tools_answers_as_well() -> None:
    plain = PLAN.model_copy(update={"chat": agent("chat-agent", strategy=Strategy.SINGLE_CALL, iterations=1)})
    talk = Conversation({"chat-agent": [Answer("Yes.")]}, plain)
    outcome = await talk.ask()
    assert outcome is not None and outcome.final_analysis == "Yes."
    assert "/dev/sda1 is full" in talk.opening()


async def test_a_model_that_gives_no_answer_is_the_outcome_of_the_question() -> None:
    talk = Conversation(by_turn({"chat-agent": [Answer("")] * 9}))
    outcome = await talk.ask()
    assert outcome is not None and outcome.state is State.FAILED
    assert outcome.failure is not None and outcome.final_analysis is None


def test_the_plan_of_an_answer_has_its_time_its_budget_and_no_limit_of_runs() -> None:
    limited = PLAN.model_copy(update={"chat_seconds": 90.0, "namespace_limit": 1, "chain_limit": 1})
    made = limited.to_answer()
    assert [s.name for s in made.stages] == ["chat"]
    assert made.stages[0].agents == (PLAN.chat,)
    assert made.limits == replace_limits(PLAN, 90.0)
    assert (made.budget, made.namespace_limit, made.chain_limit) == (PlannedBudget(tool_calls=1), None, None)
    assert PLAN.to_answer().limits == PLAN.limits


def replace_limits(of: Plan, seconds: float) -> object:
    return of.limits.model_copy(update={"investigation_seconds": seconds})
