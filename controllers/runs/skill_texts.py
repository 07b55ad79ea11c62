"""Reads the texts of skills, and freezes them into the plan of a run.

Decision: as with runbooks, a text that an object names and that is not there keeps the run from being accepted, and
says so. A replay of a run keeps the texts of that run, which need not exist any more.
"""

from dataclasses import dataclass
from typing import Final

from tarsy.controllers.runs.git_texts import ReadGitText
from tarsy.controllers.runs.inputs import NotYet, config_map_value
from tarsy.evidence.alerted import alert_labels
from tarsy.kube.client import KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import Plan, SkillPlan
from tarsy.plan.skills import fits_labels, with_skills, with_text
from tarsy.resources.v1alpha1 import Skill
from tarsy.resources.v1alpha1.common import ConfigMapKeyRef
from tarsy.resources.v1alpha1.skill import MAX_SKILL_BYTES


@dataclass(frozen=True, slots=True)
class SkillSources:
    """Reads the texts of skills: from ConfigMaps, and from Git."""

    client: KubeClient
    git: ReadGitText


MOST_TEXT: Final = 2_097_152
"""Maximum bytes of the skills of one run."""


async def freeze_skills(plan: Plan, alert: str, texts: SkillSources, kept: Plan | None = None) -> Plan:
    """Returns a plan with the texts of its skills, without those that the labels of the alert exclude.

    Args:
        plan: as resolved.
        alert: text of the alert.
        texts: reads them.
        kept: the plan of the run that this one replays, whose texts are used; None: the texts of now.

    Raises:
        NotYet: texts are not there, with a sentence for each, or all are too large together.
    """
    if not plan.skills:
        return plan
    labels = alert_labels(alert)
    before = {(one.ref.namespace, one.name): one for one in (kept.skills if kept is not None else ())}
    found: list[SkillPlan] = []
    refusals: list[NotYet] = []
    for skill in plan.skills:
        if not fits_labels(skill, labels):
            continue
        earlier = before.get((skill.ref.namespace, skill.name))
        if earlier is not None:
            found.append(skill.model_copy(update={"text": earlier.text, "digest": earlier.digest}))
            continue
        try:
            found.append(await read_skill(skill, texts))
        except NotYet as refusal:
            refusals.append(refusal)
    if refusals:
        refusals.sort(key=lambda one: one.reason == "GitFetching")  # what people must mend comes first
        raise NotYet(refusals[0].reason, "; ".join(one.message for one in refusals))
    size = sum(len(one.text.encode()) for one in found)
    if size > MOST_TEXT:
        text = f"the skills of this run have {size:,} bytes together, at most {MOST_TEXT:,} may; name fewer skills"
        raise NotYet("SkillsTooLarge", f"{plan.chain.kind} {plan.chain.namespace}/{plan.chain.name}: {text}")
    return with_skills(plan, tuple(found))


async def read_skill(skill: SkillPlan, texts: SkillSources) -> SkillPlan:
    """Returns a skill with its text.

    Args:
        skill: as resolved.
        texts: reads it.

    Raises:
        NotYet: the text is not there.
    """
    at = FieldPath(Skill.KIND, skill.ref.namespace, skill.name)
    if skill.git is not None:
        read = await texts.git(skill.git, at / "git", MAX_SKILL_BYTES)
        return with_text(skill, read.content)
    if skill.config_map is None:
        return skill
    source = ConfigMapKeyRef(name=skill.config_map.name, key=skill.config_map.key)
    return with_text(skill, await config_map_value(source, at, MAX_SKILL_BYTES, texts.client))
