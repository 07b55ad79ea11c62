"""Adds the tool that loads skills to the tools of an agent, and leaves out those that its required skills exclude."""

from collections.abc import Mapping, Sequence

from tarsy.engine.ports import Toolbox
from tarsy.engine.skills.agent_skills import LOAD_SKILL, AgentSkills, permits
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome

MOST_NAMES = 8
"""Skills that one call may load."""


class SkillToolbox:
    """The tools of an agent with skills (`tarsy.engine.ports.Toolbox`).

    Args:
        inner: the tools of its servers.
        skills: its skills.
    """

    def __init__(self, inner: Toolbox, skills: AgentSkills) -> None:
        self._inner = inner
        self._skills = skills

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """The tools of its servers that its required skills permit, and the one that loads skills."""
        kept = tuple(tool for tool in self._inner.tools if permits(self._skills.required, tool.name))
        return (*kept, _definition(self._skills)) if self._skills.offered else kept

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Servers that could not be opened."""
        return self._inner.unavailable

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions that servers give."""
        return self._inner.instructions

    def split(self, name: str) -> tuple[str, str]:
        """Splits `server.tool`."""
        return self._inner.split(name)

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """Digests of the tools of servers."""
        return self._inner.digests

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Tools that nobody accepted."""
        return self._inner.unaccepted

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that differ from `pinned`."""
        return self._inner.hold(pinned)

    def access(self, name: str) -> Access:
        """Loading a skill only reads."""
        return Access.READ_ONLY if name == LOAD_SKILL else self._inner.access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Why a tool of a server is not called."""
        return self._inner.refusal(name)

    def repeatable(self, name: str) -> bool:
        """Loading a skill has no effect outside."""
        return name == LOAD_SKILL or self._inner.repeatable(name)

    def needs_approval(self, name: str) -> bool:
        """Whether each call of the tool needs the approval of people."""
        return self._inner.needs_approval(name)

    def shown(self, name: str, arguments: str) -> str:
        """A call's arguments without secrets."""
        return self._inner.shown(name, arguments)

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool of a server; skills are loaded before (`tarsy.engine.skills.loading`)."""
        return await self._inner.call(name, arguments, timeout=timeout, idempotency_key=idempotency_key)


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
