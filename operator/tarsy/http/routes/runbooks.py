"""Lists the runbooks that Chains and InvestigationDefaults declare, and returns the text of one."""

from pydantic import BaseModel

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Handler, Route
from tarsy.http.routes.declared_texts import declared_text
from tarsy.http.routes.objects import list_permission, may_list, paginate, valid_object, valid_objects
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.runbooks import RunbookList, RunbookTextView, RunbookView
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults

_Declares = type[Chain] | type[InvestigationDefaults]


async def list_runbooks(ask: CheckedRequest) -> BaseModel:
    """Returns the runbooks of namespaces; those of InvestigationDefaults to callers who may list these."""
    query = ask.query(ListQuery)
    objects: list[Chain | InvestigationDefaults] = [*await valid_objects(ask, Chain, query.namespace)]
    if await may_list(ask, InvestigationDefaults, query.namespace):
        objects += await valid_objects(ask, InvestigationDefaults, query.namespace)
    items = [RunbookView.of(one, one.spec.runbook) for one in objects if one.spec.runbook is not None]
    found, token = paginate(f"runbooks/{query.namespace}", query, items, _place, 3)
    return RunbookList.model_validate({"items": tuple(found), "continue": token})


def _place(item: RunbookView) -> tuple[str, str, str]:
    return item.namespace, item.kind, item.name


def _text_of(kind: _Declares) -> Handler:
    async def get_runbook(ask: CheckedRequest) -> RunbookTextView:
        found: Chain | InvestigationDefaults = await valid_object(ask, kind)
        runbook = found.spec.runbook
        if runbook is None:
            raise NotFound(f"{kind.KIND} {ask.namespace}/{ask.name} has no spec.runbook")
        text = await declared_text(ask, runbook.inline, runbook.config_map_key_ref, runbook.git)
        shown = RunbookView.of(found, runbook)
        return RunbookTextView(**dict(shown), text=text.text, digest=text.digest, problem=text.problem)

    return get_runbook


ROUTES = (
    Route(
        method="GET",
        path="/runbooks",
        operation="listRunbooks",
        summary="List the runbooks that chains and defaults declare",
        handler=list_runbooks,
        permission=list_permission(Chain),
        query=ListQuery,
        response=RunbookList,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/chains/{name}/runbook",
        operation="getChainRunbook",
        summary="Get the runbook of a chain, with its text",
        handler=_text_of(Chain),
        permission=Permission("get", "chains", group=PRODUCT_GROUP),
        response=RunbookTextView,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigationdefaults/{name}/runbook",
        operation="getDefaultRunbook",
        summary="Get the default runbook of a namespace, with its text",
        handler=_text_of(InvestigationDefaults),
        permission=Permission("get", "investigationdefaults", group=PRODUCT_GROUP),
        response=RunbookTextView,
    ),
)
