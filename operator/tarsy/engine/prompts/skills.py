"""Describes the skills of an agent: texts of those that it follows from the start, and a catalogue of the others.

Both stand in the system message, outside of all fences: their authors configure the agents.
"""

from collections.abc import Sequence

from tarsy.engine.prompts.fence import inline
from tarsy.engine.prompts.template import template
from tarsy.engine.skills.agent_skills import AgentSkills
from tarsy.engine.skills.loading import skill_text
from tarsy.plan.model import SkillPlan
from tarsy.resources.v1alpha1.skill import MAX_SKILL_DESCRIPTION


def skill_sections(skills: AgentSkills, *, tools: bool = True) -> Sequence[str]:
    """Returns the sections of a system message about skills.

    Args:
        skills: of the agent.
        tools: whether the agent can call the tool that loads them.
    """
    sections = []
    if skills.required:
        texts = "\n\n".join(map(skill_text, skills.required))
        sections.append(template("skills_required").substitute(texts=texts))
    if skills.offered and tools:
        lines = "\n".join(map(_line, skills.offered))
        sections.append(template("skills_offered").substitute(skills=lines))
    return sections


def _line(skill: SkillPlan) -> str:
    return f"- {skill.name}: {inline(skill.description, MAX_SKILL_DESCRIPTION)}"
