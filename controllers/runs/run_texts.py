"""Reads the texts that a run is given beside its alert: its runbook and its skills, from where objects declare them."""

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.git_texts import git_texts
from tarsy.controllers.runs.inputs import BeingFetched, TextSources, default_runbook, local_runbook, namespace_sources
from tarsy.controllers.runs.skill_texts import SkillSources
from tarsy.plan.errors import FieldPath
from tarsy.resources.v1alpha1 import Chain, Investigation
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.runbook.sources import redact_url, sources


def skill_sources(investigation: Investigation, context: ReconcileContext) -> SkillSources:
    """Returns the reader of the skills of a run.

    Args:
        investigation: the run.
        context: of the reconcile.
    """
    meta = investigation.metadata
    key = Key(investigation.KIND, meta.namespace, meta.name)
    return SkillSources(context.kubernetes.client, git_texts(key, context))


def _text_sources(investigation: Investigation, context: ReconcileContext) -> TextSources:
    read = skill_sources(investigation, context).git

    async def text(source: GitSource, at: FieldPath, limit: int) -> str:
        return (await read(source, at, limit)).content

    return TextSources(context.kubernetes.client, text)


async def run_runbook(
    investigation: Investigation, alert: AlertContent, at: FieldPath, chain: Chain, context: ReconcileContext
) -> str:
    """Reads the alert's runbook, else the default; when a URL fails, an Event reports it and the default is used.

    Args:
        investigation: the run.
        alert: its alert.
        at: the field that holds the alert.
        chain: its chain.
        context: of the reconcile.

    Raises:
        NotYet: it is not where an object says.
        BeingFetched: it is being fetched by its URL.
    """
    if alert.runbook is None or alert.runbook.url is None:
        return await local_runbook(
            alert,
            at,
            chain,
            context.cache,
            _text_sources(investigation, context),
            context.settings.library_namespace,
        )
    meta, url = investigation.metadata, alert.runbook.url
    among = sources(
        context.runbooks.hosts, namespace_sources(at.namespace, context.cache, context.settings.library_namespace)
    )
    fetched = context.runbooks.take(meta.uid, Key(investigation.KIND, meta.namespace, meta.name), url, among)
    if fetched is None:
        raise BeingFetched
    if fetched.problem is None:
        return fetched.text
    problem = f"The runbook at {redact_url(url)} is not available: {fetched.problem}."
    await context.kubernetes.events.tell(
        investigation, "RunbookUnavailable", f"{problem} The default runbook is used.", kind="Warning"
    )
    default = await default_runbook(
        at.namespace,
        chain,
        context.cache,
        _text_sources(investigation, context),
        context.settings.library_namespace,
    )
    if not default:
        return f"{problem} There is no default runbook."
    return f"{problem} The default runbook follows.\n\n{default}"
