"""Computes the plan that an alert of a type would follow, from the current objects.

Decision: the code of acceptance makes the plan. Both the API and the plugin with a kubeconfig call this, each with the
objects that its caller may list, and ask before it whether the caller may use the chain.
"""

from collections.abc import Callable

from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.model import ObjectRef
from tarsy.plan.outline import objects_of, outline
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.plan.select import NoChain, select
from tarsy.resources.health import problems
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import KINDS, Agent, Alert, Chain, InvestigationDefaults, LLMProvider, MCPServer, Skill
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import NameRef

PLANNED_FROM: tuple[type[AnyResource], ...] = (Agent, Chain, InvestigationDefaults, LLMProvider, MCPServer, Skill)
"""Kinds that runs are planned from."""


def chain_for(namespace: str, question: PlanQuestion, catalog: ResourceCatalog, library: str) -> Chain | PlanView:
    """Returns the chain that would run, or the view that tells why there is none.

    Args:
        namespace: of the alert.
        question: the alert.
        catalog: the known objects.
        library: namespace of the library.
    """
    try:
        chain = select(
            namespace=namespace,
            alert=_content(question),
            catalog=catalog,
            library_namespace=library,
            source=FieldPath(Alert.KIND, namespace, ""),
        )
    except PlanInvalid as invalid:
        return PlanView.without_plan(namespace, question.alert_type, None, *map(str, invalid.errors))
    if isinstance(chain, NoChain) and chain.default is not None:
        return chain.default
    if isinstance(chain, NoChain):
        return PlanView.without_plan(namespace, question.alert_type, None, chain.message)
    return chain


def plan_view(
    namespace: str,
    question: PlanQuestion,
    chain: Chain,
    catalog: ResourceCatalog,
    library: str,
    readable: Callable[[str, str], bool],
) -> PlanView:
    """Returns the plan of a chain, or the errors of the configuration.

    Args:
        namespace: of the alert.
        question: the alert.
        chain: the chain that would run.
        catalog: the known objects.
        library: namespace of the library.
        readable: whether the caller may list a kind in a namespace; of other objects only the reasons of warnings are
            told.
    """
    try:
        explained = explain_plan(
            PlanRequest(
                namespace=namespace,
                alert=_content(question),
                chain=chain,
                catalog=catalog,
                library_namespace=library,
                source=FieldPath(Alert.KIND, namespace, ""),
            )
        )
    except PlanInvalid as invalid:
        place = chain.metadata.namespace, chain.metadata.name
        return PlanView.without_plan(namespace, question.alert_type, place, *map(str, invalid.errors))
    found = objects_of(outline(explained))
    return PlanView.of(explained, {key: _warnings(ref, catalog, readable) for key, ref in found.items()})


def _content(question: PlanQuestion) -> AlertContent:
    named = NameRef(name=question.chain) if question.chain is not None else None
    return AlertContent(alert_type=question.alert_type, data="planned", chain_ref=named)


def _warnings(ref: ObjectRef, catalog: ResourceCatalog, readable: Callable[[str, str], bool]) -> tuple[str, ...]:
    found = catalog.get(KINDS[ref.kind], ref.namespace, ref.name)
    told = [] if found is None else list(problems(found.status.conditions))
    if told and not readable(ref.kind, ref.namespace):
        return tuple(f"{one.type}: {one.reason}" for one in told)
    return tuple(f"{one.type}: {one.reason}. {one.message}" for one in told)
