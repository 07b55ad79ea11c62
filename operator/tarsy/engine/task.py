"""Describes the task of a stage: the alert, the runbook and the conclusions of earlier stages, or a question."""

from dataclasses import dataclass, replace
from uuid import UUID

from tarsy.engine.prompts.context import StageConclusion
from tarsy.record.work import AgentWork


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A question about an investigation that has ended: who asks, and what is known.

    `history` is what `investigation_context` makes, its fences in it.
    """

    author: str
    text: str
    history: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """Holds the task of a sub-agent, as the dispatching model wrote it."""

    task: str
    hypothesis: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """The job of a stage.

    `synthesise` names the stage whose agents' work is to be combined, `agents` tell how each of them ended;
    `summarise` is the analysis an executive summary is made of, `question` what is asked instead of an investigation,
    `assignment` what a sub-agent is asked.
    `concludes`: the agent's answer is the stage's
    conclusion; `last`: no stage of the chain that investigates comes after. `precedents` are the lines about earlier
    investigations. `acts`: the agent may act on what earlier stages found, and adds nothing to it.
    """

    alert_type: str
    alert_data: str
    runbook: str
    previous: tuple[StageConclusion, ...]
    stage_name: str
    synthesise: UUID | None = None
    agents: tuple[AgentWork, ...] = ()
    summarise: str | None = None
    question: ChatQuestion | None = None
    assignment: Assignment | None = None
    concludes: bool = False
    last: bool = False
    precedents: str = ""
    acts: bool = False

    def to_assign(self, assignment: Assignment) -> "Task":
        """The task of a sub-agent: it sees nothing else of the investigation."""
        return Task(self.alert_type, "", "", (), self.stage_name, assignment=assignment)

    def to_synthesise(self, stage: UUID, agents: tuple[AgentWork, ...]) -> "Task":
        """The task of combining what the agents of `stage` found."""
        return replace(self, synthesise=stage, agents=agents, concludes=True)

    def to_summarise(self, analysis: str) -> "Task":
        """The task of saying `analysis` in a few lines."""
        return replace(self, summarise=analysis)

    def finds(self, *, concluding: bool) -> bool:
        """Whether the agent's answer is the run's; `concluding`: the run ends with this stage, whichever it is."""
        return self.concludes and (self.last or concluding)
