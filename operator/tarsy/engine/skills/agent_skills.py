"""Finds the skills of an agent, and the tools that they permit.

Decision: a skill narrows from the answer of the model that follows its load, because calls of one answer may run side
by side. It narrows until the agent ends: each further skill can only take tools away, so that no order of loads widens
anything. Approvals and policies are decided beside this, on what is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tarsy.plan.model import AgentPlan, SkillPlan
from tarsy.plan.policy import names
from tarsy.record.messages import Refusal
from tarsy.record.run import LoopState

LOAD_SKILL: Final = "load_skill"
"""Name of the tool that loads skills; no tool of a server has a name without its server."""

NOT_IN_SKILL = "SkillNarrows"
"""Reason for which a call is refused whose tool a loaded skill does not name."""


@dataclass(frozen=True, slots=True)
class AgentSkills:
    """The skills of an agent: those whose texts are in its prompt, and those that it may load."""

    required: tuple[SkillPlan, ...] = ()
    offered: tuple[SkillPlan, ...] = ()

    @classmethod
    def of(cls, agent: AgentPlan, skills: Sequence[SkillPlan]) -> "AgentSkills":
        """Finds the skills of an agent.

        Args:
            agent: as planned.
            skills: those of the plan.
        """
        known = {(skill.ref.namespace, skill.name): skill for skill in skills}
        used = [(use, known[use.namespace, use.name]) for use in agent.skills if (use.namespace, use.name) in known]
        return cls(
            tuple(skill for use, skill in used if use.required), tuple(skill for use, skill in used if not use.required)
        )

    def in_use(self, loop: LoopState, before: int | None = None) -> tuple[SkillPlan, ...]:
        """Returns the skills that an agent follows.

        Args:
            loop: its state.
            before: place of a message; skills loaded after it do not count. None: all count.
        """
        loaded = {name for name, seq in loop.loaded_skills if before is None or seq < before}
        return (*self.required, *(skill for skill in self.offered if skill.name in loaded))


def permits(skills: Iterable[SkillPlan], tool: str) -> bool:
    """Whether all skills that list tools list this one.

    Args:
        skills: those in use.
        tool: `SERVER.TOOL`.
    """
    return all(skill.allowed_tools is None or names(skill.allowed_tools, tool) for skill in skills)


def skill_refusal(skills: Iterable[SkillPlan], tool: str) -> Refusal | None:
    """Returns why a tool may not be called while skills are in use; None: it may.

    Args:
        skills: those in use.
        tool: `SERVER.TOOL`.
    """
    against = next((skill for skill in skills if not permits((skill,), tool)), None)
    if against is None:
        return None
    allowed = ", ".join(against.allowed_tools or ()) or "no tools"
    return Refusal(
        NOT_IN_SKILL, f"{tool} was not called: while skill {against.name} is loaded, only {allowed} may be called."
    )
