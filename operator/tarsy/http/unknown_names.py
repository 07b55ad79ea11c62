"""Finds references of a submitted alert that no run could resolve: unknown MCP servers, tools and native tools.

Decision: only alerts that name servers or native tools are checked, with the code that plans runs, and only their own
fields: errors of a chain concern its author, and an alert without a chain waits for one. A caller who may not use the
chain or a server learns nothing about it here: acceptance refuses the run. The check is advisory (the configuration may
change before acceptance), so an alert is accepted if the check cannot be made.
"""

import asyncio
import contextlib
import logging

from tarsy.http.authentication.identity import Permission
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.plan_answer import PLANNED_FROM
from tarsy.http.route import CheckedRequest
from tarsy.http.routes.objects import valid_objects
from tarsy.kube.client import ApiError
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import FieldPath, PlanError, PlanInvalid
from tarsy.plan.lookup import Lookup
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.plan.select import NoChain, search_path, select
from tarsy.plan.tools import servers
from tarsy.resources.v1alpha1 import Alert, Chain, MCPServer
from tarsy.resources.v1alpha1.alert import AlertContent

_log = logging.getLogger(__name__)

_SECONDS = 5.0


async def unknown_references(ask: CheckedRequest, content: AlertContent) -> list[str]:
    """Returns an error for each reference that cannot be resolved, with its field; empty if they cannot be checked.

    Args:
        ask: the request; its caller may create alerts in its namespace.
        content: the alert.
    """
    if content.mcp_servers is None and content.native_tools is None:
        return []
    try:
        async with asyncio.timeout(_SECONDS):
            return [f"{error.field.removeprefix('spec.')}: {error.message}" for error in await _found(ask, content)]
    except (ApiError, TimeoutError) as error:
        _log.warning("could not check the MCP servers and native tools of an alert before its acceptance: %s", error)
        return []


async def _found(ask: CheckedRequest, content: AlertContent) -> list[PlanError]:
    namespace, library = ask.namespace, ask.services.library_namespace
    catalog, at = await planning_catalog(ask), FieldPath(Alert.KIND, namespace, "")
    try:
        chain = select(namespace=namespace, alert=content, catalog=catalog, library_namespace=library, source=at)
    except PlanInvalid:
        return []
    look = Lookup(catalog)
    if isinstance(chain, NoChain):
        servers(content.mcp_servers or (), at / "mcpServers", search_path(namespace, library), namespace, look)
    elif await may_use(ask, chain):
        with contextlib.suppress(PlanInvalid):  # `look` collects all errors
            explain_plan(
                PlanRequest(
                    namespace=namespace,
                    alert=content,
                    chain=chain,
                    catalog=catalog,
                    library_namespace=library,
                    source=at,
                ),
                look,
            )
    hidden = [
        (at / "mcpServers")[index] / "tools"
        for index, one in enumerate(content.mcp_servers or ())
        for server in [_first(catalog, search_path(namespace, library), one.name)]
        if server is not None and not await may_use(ask, server)
    ]
    paths = {field.path for field in hidden}
    return [error for error in look.errors if error.kind == Alert.KIND and error.field not in paths]


def _first(catalog: ResourceCatalog, places: tuple[str, ...], name: str) -> MCPServer | None:
    return next((found for place in places if (found := catalog.get(MCPServer, place, name)) is not None), None)


async def may_use(ask: CheckedRequest, obj: Chain | MCPServer) -> bool:
    """Returns whether the caller may use a chain or a server."""
    meta, permission = obj.metadata, Permission("use", obj.PLURAL, group=PRODUCT_GROUP)
    return await ask.services.access.allowed(ask.caller, permission, meta.namespace, meta.name)


async def planning_catalog(ask: CheckedRequest) -> ResourceCatalog:
    """Reads all objects that runs of the namespace are planned from."""
    places = search_path(ask.namespace, ask.services.library_namespace)
    found = [one for kind in PLANNED_FROM for one in await valid_objects(ask, kind, places)]
    namespace = await ask.services.kube.find("Namespace", None, ask.namespace) or {"metadata": {}}
    return ResourceCatalog(found, {ask.namespace: namespace["metadata"].get("labels") or {}})
