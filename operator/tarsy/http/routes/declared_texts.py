"""Reads texts that objects declare, inline, in a ConfigMap or in Git, for callers who may read them.

Decision: a text in a ConfigMap is returned only to callers who may read the ConfigMap themselves. One in Git is public,
and comes from the database: this process never calls a repository.
"""

from dataclasses import dataclass

from tarsy.http.authentication.identity import Permission
from tarsy.http.route import CheckedRequest
from tarsy.kube.values import config_map_text
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import ConfigMapKey
from tarsy.plan.skills import text_digest
from tarsy.resources.v1alpha1.common import ConfigMapKeyRef
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.store.git_texts import GitTextStore


@dataclass(frozen=True, slots=True)
class DeclaredText:
    """A text with the SHA-256 of its source, or why there is none."""

    text: str | None = None
    digest: str | None = None
    problem: str | None = None


async def declared_text(
    ask: CheckedRequest, inline: str | None, config_map: ConfigMapKeyRef | None, git: GitSource | None
) -> DeclaredText:
    """Returns the text of an object in the namespace of a request.

    Args:
        ask: the request.
        inline: the text in the object.
        config_map: the key that has it.
        git: the file that has it.
    """
    if git is not None:
        found = await GitTextStore(ask.services.pool).find(git.url, git.commit, git.path)
        if found is None:
            return DeclaredText(problem=f"{git.path} of commit {git.commit[:12]} has not been read by a run yet")
        return DeclaredText(found.content, found.digest)
    if config_map is None:
        return DeclaredText(inline, text_digest(inline)) if inline is not None else DeclaredText()
    where = f"ConfigMap {ask.namespace}/{config_map.name}"
    may = Permission("get", "configmaps", group="")
    if not await ask.services.access.allowed(ask.caller, may, ask.namespace, config_map.name):
        return DeclaredText(problem=f"{ask.caller.username} may not get {where}, which has the text")
    key = ConfigMapKey(namespace=ask.namespace, name=config_map.name, key=config_map.key)
    try:
        text = await config_map_text(ask.services.kube, key)
    except SecretProblem as error:
        return DeclaredText(problem=error.message)
    return DeclaredText(text, text_digest(text))
