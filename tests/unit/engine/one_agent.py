"""One agent of each strategy, and what its model says to do the same thing: ask for a tool, or conclude."""

from dataclasses import dataclass, field

from tarsy.plan.model import AgentLimits, AgentPlan, Plan, Strategy
from tarsy.record.run import RunOutcome
from tarsy.record.timeline import Event, TimelineEvent
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, plan, says, scene, single, stage
from unit.engine.memory import MemoryRecorder
from wire.scripted_client import Answer

LOOPS = (Strategy.REACT, Strategy.NATIVE_THINKING, Strategy.LANGCHAIN)
FUNCTIONS = (Strategy.NATIVE_THINKING, Strategy.LANGCHAIN)
SYNTHESES = (Strategy.SYNTHESIS, Strategy.SYNTHESIS_NATIVE_THINKING)
ALONE = (*SYNTHESES, Strategy.SINGLE_CALL)

ARGUMENTS = '{"name": "web"}'


def who(strategy: Strategy, *, iterations: int = 6) -> AgentPlan:
    """The agent `triage` of a strategy."""
    return agent(strategy=strategy, iterations=iterations) if strategy in LOOPS else single("triage", strategy)


def asks(strategy: Strategy, thought: str = "look at it") -> Answer:
    """The model asks for `k.get`."""
    if strategy is Strategy.REACT:
        return Answer(f"Thought: {thought}\nAction: k.get\nAction Input: {ARGUMENTS}")
    return Answer("I look", thinking=thought, tool_calls=(call("k.get", "c1", ARGUMENTS),))


def concludes(strategy: Strategy, text: str = "the node is full") -> Answer:
    """The model concludes."""
    if strategy is Strategy.REACT:
        return Answer(f"Thought: I know\nFinal Answer: {text}")
    return Answer(text, thinking="I know")


def tools() -> FakeToolboxes:
    """One server with two tools."""
    return FakeToolboxes({"k.get": says("node: full"), "k.logs": says("No space left")})


class WatchingRecorder(MemoryRecorder):
    """Keeps every event as it was written, not only what became of it."""

    def _events(self, events: object) -> None:
        self.written: list[Event] = getattr(self, "written", [])
        self.written.extend(events)  # type: ignore[arg-type]
        super()._events(events)  # type: ignore[arg-type]


@dataclass
class Done:
    """A run of one agent, ended."""

    scene: Scene
    outcome: RunOutcome
    plan: Plan
    written: list[Event] = field(default_factory=list)

    @property
    def events(self) -> list[TimelineEvent]:
        """In order."""
        return sorted(self.scene.record.events.values(), key=lambda event: event.seq)


async def run(
    strategy: Strategy,
    *answers: Answer,
    iterations: int = 6,
    toolboxes: FakeToolboxes | None = None,
    limits: AgentLimits | None = None,
    alert: str = "pod checkout-7d",
) -> Done:
    """Runs one agent whose model gives these answers, one after the other."""
    s = scene({"triage": answers}, toolboxes=toolboxes or tools())
    s.recorder = WatchingRecorder(s.record)
    of = plan(stage("look", who(strategy, iterations=iterations)), limits=limits)
    outcome = await s.run(of, alert=alert)
    return Done(s, outcome, of, getattr(s.recorder, "written", []))


async def run_synthesis(strategy: Strategy, answer: Answer) -> Done:
    """Runs a stage of two agents and the synthesis of a strategy after it."""
    script = {"a": [Answer("a says full")], "b": [Answer("b says empty")], "look-synth": [answer]}
    s = scene(by_turn(script), toolboxes=tools())
    s.recorder = WatchingRecorder(s.record)
    of = plan(
        stage("look", agent("a"), agent("b")).model_copy(update={"synthesis": single("look-synth", strategy)}),
    )
    outcome = await s.run(of)
    return Done(s, outcome, of, getattr(s.recorder, "written", []))
