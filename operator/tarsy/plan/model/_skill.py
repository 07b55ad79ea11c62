"""Defines the skills of a plan: their texts, once for a run, and which agent uses which."""

from tarsy.plan.model._reference import ConfigMapKey, FrozenModel, ObjectRef


class GitFilePlan(FrozenModel):
    """A file of a commit of a Git repository."""

    url: str
    commit: str
    path: str


class SkillPlan(FrozenModel):
    """A skill with its text.

    The text in a ConfigMap or in Git is empty until acceptance has read it (`tarsy.controllers.runs.skill_texts`).
    """

    ref: ObjectRef
    description: str
    text: str = ""
    digest: str = ""
    """SHA-256 of the text as its source has it, as hex."""
    config_map: ConfigMapKey | None = None
    git: GitFilePlan | None = None
    allowed_tools: tuple[str, ...] | None = None
    """Tools that may be called while the skill is loaded, as `SERVER.TOOL`, `*` for any characters; None: all."""
    workload_labels: tuple[tuple[str, str], ...] = ()
    """Labels that the text of the alert must name; acceptance leaves out a skill that it does not fit."""

    @property
    def name(self) -> str:
        """The name of the Skill."""
        return self.ref.name


class AgentSkill(FrozenModel):
    """The use of a skill by an agent."""

    namespace: str
    name: str
    required: bool = False
    """Whether the text is in the prompt from the start."""
