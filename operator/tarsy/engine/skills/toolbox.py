"""Adds the tool that loads skills to the tools of an agent, and leaves out those that its required skills exclude."""

from collections.abc import Sequence

from tarsy.engine.ports import Toolbox
from tarsy.engine.skills.agent_skills import LOAD_SKILL, AgentSkills, permits
from tarsy.engine.wrapped_toolbox import WrappedToolbox
from tarsy.record.messages import Access, ToolDefinition

MOST_NAMES = 8
"""Skills that one call may load."""


class SkillToolbox(WrappedToolbox):
    """The tools of an agent with skills, which are loaded before a call comes here (`tarsy.engine.skills.loading`).

    Args:
        inner: the tools of its servers.
        skills: its skills.
    """

    def __init__(self, inner: Toolbox, skills: AgentSkills) -> None:
        super().__init__(inner)
        self._skills = skills

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """The tools of its servers that its required skills permit, and the one that loads skills."""
        kept = tuple(tool for tool in self._inner.tools if permits(self._skills.required, tool.name))
        return (*kept, _definition(self._skills)) if self._skills.offered else kept

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool; loading a skill only reads."""
        return Access.READ_ONLY if name == LOAD_SKILL else super().access(name)

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be made again; loading a skill has no effect outside."""
        return name == LOAD_SKILL or super().repeatable(name)


def _definition(skills: AgentSkills) -> ToolDefinition:
    known = [skill.name for skill in skills.offered]
    return ToolDefinition(
        LOAD_SKILL,
        "Loads skills: instructions of the people who run this system. The system message lists them.",
        {
            "type": "object",
            "properties": {
                "names": {
                    "type": "array",
                    "items": {"type": "string", "enum": known},
                    "minItems": 1,
                    "maxItems": MOST_NAMES,
                    "description": "Names of the skills to load.",
                }
            },
            "required": ["names"],
        },
    )
