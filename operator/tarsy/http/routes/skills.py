"""Lists Skills, and returns the text of one."""

from pydantic import BaseModel

from tarsy.http.authentication.identity import Permission
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.configuration import ConfigurationQuery
from tarsy.http.routes.declared_texts import declared_text
from tarsy.http.routes.objects import library_objects, list_permission, paginate, sort_key, valid_object, valid_objects
from tarsy.http.views.skills import SkillList, SkillTextView, SkillView
from tarsy.resources.v1alpha1.skill import Skill


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
    skill = await valid_object(ask, Skill)
    spec = skill.spec
    found = await declared_text(ask, spec.body, spec.config_map_key_ref, spec.git)
    shown = SkillView.of(skill)
    return SkillTextView(
        namespace=ask.namespace,
        name=ask.name,
        description=skill.spec.description,
        source=shown.source,
        git=shown.git,
        text=found.text,
        digest=found.digest,
        problem=found.problem,
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
