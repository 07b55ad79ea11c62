"""Reconciles Skills: checks that their texts can be read.

Watches: Skills. Decides: whether a run could use the skill now. Writes: `Ready`, and the digest and size of the text
that a run would get. ConfigMaps are not watched, so a skill that names one is checked again at intervals; a run reads
it anew.
"""

from datetime import UTC, datetime

from tarsy.controllers.configuration import RECHECK_SECONDS, SETTLED_RECHECK_SECONDS, ConfigurationProblem, validate
from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.runs.git_texts import git_texts
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.runs.skill_texts import SkillSources, read_skill
from tarsy.plan.errors import FieldPath
from tarsy.plan.skills import planned_skill
from tarsy.resources.v1alpha1 import Skill, SkillStatus


async def reconcile(skill: Skill, context: ReconcileContext) -> float | None:
    """Updates `Ready`; returns the seconds until the next look, None when none is needed.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    errors: list[ConfigurationProblem] = []
    found = None
    try:
        key = Key(skill.KIND, skill.metadata.namespace, skill.metadata.name)
        sources = SkillSources(context.kubernetes.client, git_texts(key, context))
        found = await read_skill(planned_skill(skill), sources)
    except NotYet as problem:
        at = FieldPath.of(skill)
        sentence = problem.message.removeprefix(f"{skill}: {at.path}.")
        field, _, message = sentence.partition(": ")
        errors.append(((at / field).error(message), problem.reason))
    told = validate(skill, errors, datetime.now(UTC))
    status = SkillStatus(
        observed_generation=told.observed_generation,
        conditions=told.conditions,
        digest=None if found is None else found.digest,
        size_bytes=None if found is None else len(found.text.encode()),
    )
    await write_status(context.kubernetes.client, context.cache, skill, status)
    if skill.spec.body is not None:
        return None
    return RECHECK_SECONDS if errors else SETTLED_RECHECK_SECONDS
