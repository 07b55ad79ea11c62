"""Lists Skills, and returns the text of one.

Decision: a text in a ConfigMap is returned only to callers who may read the ConfigMap themselves.
"""

from pydantic import BaseModel

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.configuration import ConfigurationQuery
from tarsy.http.routes.objects import library_objects, list_permission, paginate, sort_key, valid_objects
from tarsy.http.views.skills import SkillList, SkillTextView, SkillView
from tarsy.kube.values import config_map_text
from tarsy.llm.registry import SecretProblem
from tarsy.plan.skills import planned_skill, with_text
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1.skill import Skill
from tarsy.store.git_texts import GitTextStore


async def list_all_skills(ask: CheckedRequest) -> BaseModel:
    """Returns the skills of namespaces."""
    query = ask.query(ConfigurationQuery)
    everything = {sort_key(one): one for one in await valid_objects(ask, Skill, query.namespace)}
    for home in query.namespace if query.with_library else ():
        everything |= {sort_key(one): one for one in await library_objects(ask, Skill, home)}
    question = f"skills/{query.namespace}/{query.with_library}"
    found, token = paginate(question, query, list(everything.values()), sort_key, 2)
    return SkillList.model_validate({"items": tuple(map(SkillView.of, found)), "continue": token})


async def get_skill_text(ask: CheckedRequest) -> SkillTextView:
    """Returns the text of a skill.

    Raises:
        NotFound: there is no such Skill, or it is not valid.
    """
    where = f"Skill {ask.namespace}/{ask.name}"
    raw = await ask.services.kube.find(Skill.KIND, ask.namespace, ask.name)
    if raw is None:
        raise NotFound(f"{where} does not exist")
    try:
        skill = parse_as(Skill, raw)
    except InvalidResource:
        raise NotFound(f"{where} is not valid; see its condition Ready") from None
    planned, problem = planned_skill(skill), None
    if planned.config_map is not None:
        key = planned.config_map
        may = Permission("get", "configmaps", group="")
        if await ask.services.access.allowed(ask.caller, may, key.namespace, key.name):
            try:
                planned = with_text(planned, await config_map_text(ask.services.kube, key))
            except SecretProblem as error:
                problem = error.message
        else:
            problem = f"{ask.caller.username} may not get ConfigMap {key.namespace}/{key.name}, which has the text"
    if planned.git is not None:
        git = planned.git
        found = await GitTextStore(ask.services.pool).find(git.url, git.commit, git.path)
        if found is None:
            problem = f"{git.path} of commit {git.commit[:12]} has not been read; see the condition Ready of the Skill"
        else:
            planned = with_text(planned, found.content)
    shown = SkillView.of(skill)
    return SkillTextView(
        namespace=ask.namespace,
        name=ask.name,
        description=skill.spec.description,
        source=shown.source,
        git=shown.git,
        text=planned.text or None,
        digest=planned.digest or None,
        problem=problem,
    )


ROUTES = (
    Route(
        method="GET",
        path="/skills",
        operation="listSkills",
        summary="List skills, with their digests",
        handler=list_all_skills,
        permission=list_permission(Skill),
        query=ConfigurationQuery,
        response=SkillList,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/skills/{name}/text",
        operation="getSkillText",
        summary="Get the text of a skill, as the next run gets it",
        handler=get_skill_text,
        permission=Permission("get", "skills", "text"),
        response=SkillTextView,
        aggregated=True,
    ),
)
