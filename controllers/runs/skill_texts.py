"""Reads the texts of skills, and freezes them into the plan of a run.

Decision: as with runbooks, a text that an object names and that is not there keeps the run from being accepted, and
says so. A replay of a run keeps the texts of that run, which need not exist any more.
"""

from typing import Final

from tarsy.controllers.runs.inputs import NotYet, config_map_value
from tarsy.evidence.alerted import alert_labels
from tarsy.kube.client import KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import Plan, SkillPlan
from tarsy.plan.skills import fits_labels, with_skills, with_text
from tarsy.resources.v1alpha1 import Skill
from tarsy.resources.v1alpha1.common import ConfigMapKeyRef
from tarsy.resources.v1alpha1.skill import MAX_SKILL_BYTES

MOST_TEXT: Final = 2_097_152
"""Maximum bytes of the skills of one run."""


async def freeze_skills(plan: Plan, alert: str, client: KubeClient, kept: Plan | None = None) -> Plan:
    """Returns a plan with the texts of its skills, without those that the labels of the alert exclude.

    Args:
        plan: as resolved.
        alert: text of the alert.
        client: the Kubernetes API.
        kept: the plan of the run that this one replays, whose texts are used; None: the texts of now.

    Raises:
        NotYet: a text is not there, or all are too large together.
    """
    if not plan.skills:
        return plan
    labels = alert_labels(alert)
    before = {(one.ref.namespace, one.name): one for one in (kept.skills if kept is not None else ())}
    found = []
    for skill in plan.skills:
        if not fits_labels(skill, labels):
            continue
        earlier = before.get((skill.ref.namespace, skill.name))
        if earlier is not None:
            found.append(skill.model_copy(update={"text": earlier.text, "digest": earlier.digest}))
        else:
            found.append(await read_skill(skill, client))
    size = sum(len(one.text.encode()) for one in found)
    if size > MOST_TEXT:
        text = f"the skills of this run have {size:,} bytes together, at most {MOST_TEXT:,} may; name fewer skills"
        raise NotYet("SkillsTooLarge", f"{plan.chain.kind} {plan.chain.namespace}/{plan.chain.name}: {text}")
    return with_skills(plan, tuple(found))


async def read_skill(skill: SkillPlan, client: KubeClient) -> SkillPlan:
    """Returns a skill with its text.

    Args:
        skill: as resolved.
        client: the Kubernetes API.

    Raises:
        NotYet: the text is not there.
    """
    if skill.config_map is None:
        return skill
    at = FieldPath(Skill.KIND, skill.ref.namespace, skill.name)
    source = ConfigMapKeyRef(name=skill.config_map.name, key=skill.config_map.key)
    return with_text(skill, await config_map_value(source, at, MAX_SKILL_BYTES, client))
