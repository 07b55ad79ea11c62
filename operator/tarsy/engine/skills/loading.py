"""Answers calls of the tool that loads skills, from the frozen plan.

Decision: no server is called, so such a call costs no budget, and it is no evidence: its row is marked as not made.
Names that do not exist are reported beside the texts of those that do.
"""

from collections.abc import Iterable, Sequence

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.prompts.fence import inline
from tarsy.engine.skills.agent_skills import LOAD_SKILL, AgentSkills
from tarsy.engine.skills.toolbox import MOST_NAMES
from tarsy.mcp.arguments.cascade import parse_arguments
from tarsy.plan.model import SkillPlan
from tarsy.record.ids import event_id
from tarsy.record.messages import ToolOutcome
from tarsy.record.timeline import Event, EventStatus, EventType

SKILL_LOADED = "SkillLoaded"
"""Reason of the notice in the timeline."""

_SCHEMA = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}


def loads_skills(turn: CallTool, skills: AgentSkills) -> bool:
    """Whether a call loads skills, and its agent may.

    Args:
        turn: the call.
        skills: of its agent.
    """
    return turn.call.name == LOAD_SKILL and bool(skills.offered)


def load_skills(turn: CallTool, skills: AgentSkills, conversation: Conversation) -> ToolOutcome:
    """Returns the texts of the skills that a call names.

    Args:
        turn: the call.
        skills: of its agent.
        conversation: of its agent.
    """
    wanted = _names(turn)
    known = {skill.name: skill for skill in skills.offered}
    held = {name for name, seq in conversation.loop.loaded_skills if seq not in conversation.superseded}
    held |= {skill.name for skill in skills.required}
    parts, loaded = [], []
    for name in wanted[:MOST_NAMES]:
        if name in held:
            parts.append(f"Skill {name} is loaded already; its text stands above.")
        elif (skill := known.get(name)) is not None:
            parts.append(skill_text(skill))
            loaded.append(name)
        else:
            parts.append(f"There is no skill {inline(name, 64)}. Skills: {', '.join(known)}.")
    if len(wanted) > MOST_NAMES:
        parts.append(f"Only the first {MOST_NAMES} names were read; call again for the others.")
    if not wanted:
        parts.append(f"Name at least one skill in names. Skills: {', '.join(known)}.")
    failed = not loaded and not any(name in held or name in known for name in wanted)
    return ToolOutcome("\n\n".join(parts), is_error=failed, ours=True, skills=tuple(loaded))


def skill_text(skill: SkillPlan) -> str:
    """Returns the text of a skill as its agent reads it."""
    lines = [f"## Skill {skill.name}"]
    if skill.allowed_tools is not None:
        allowed = ", ".join(skill.allowed_tools) or "none"
        lines.append(f"While this skill is loaded, only these of your tools may be called: {allowed}.")
    return "\n\n".join([*lines, skill.text.strip()])


def skill_events(
    conversation: Conversation, skills: Iterable[SkillPlan], turn: CallTool | None = None
) -> Sequence[Event]:
    """Makes the events of skills that an agent begins to follow.

    Args:
        conversation: of the agent.
        skills: the skills.
        turn: the call that loaded them; None: they are in its prompt.
    """
    place = "prompt" if turn is None else f"{turn.message_seq}/{turn.index}"
    how = "is in the prompt of" if turn is None else "was loaded by"
    return [
        Event(
            id=event_id(conversation.execution, f"skill/{skill.ref.namespace}/{skill.name}/{place}"),
            type=EventType.NOTICE,
            status=EventStatus.COMPLETED,
            content=f"Skill {skill.ref.namespace}/{skill.name} {how} {conversation.plan.name} "
            f"(sha256 {skill.digest[:12]}).",
            metadata={
                "reason": SKILL_LOADED,
                "skill": skill.name,
                "namespace": skill.ref.namespace,
                "digest": skill.digest,
                "required": turn is None,
                **({"commit": skill.git.commit, "path": skill.git.path} if skill.git is not None else {}),
            },
            stage=conversation.stage,
            execution=conversation.execution,
        )
        for skill in skills
    ]


def _names(turn: CallTool) -> list[str]:
    """Returns the names in a call, each once; a single text counts as a list."""
    found = parse_arguments(turn.call.arguments, _SCHEMA).get("names")
    listed = found if isinstance(found, list) else [found]
    return list(dict.fromkeys(str(name).strip() for name in listed if isinstance(name, str) and name.strip()))
