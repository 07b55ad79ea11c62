"""Explains which route and chain match a request to the intake, and why others do not (`tarsy route --dry-run`).

Decision: the functions of the intake and of acceptance decide, with the routes and chains of files or of a cluster. The
permissions of the sender are unknown here, and the output states that.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tarsy.cli.errors import CommandError
from tarsy.cli.plans.files import read_files
from tarsy.http.intake.bodies import INTAKE_BODY_BYTES, IntakeBody, parse_body
from tarsy.http.intake.body_format import BodyFormat
from tarsy.http.intake.formats.notification import BadBody, NotAnIncident
from tarsy.http.intake.routing import RouteMatch, match_route, target
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.catalog import Catalog, ResourceCatalog
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.matching import OWN_LABEL
from tarsy.plan.select import NoChain, search_path, select
from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import parse_valid
from tarsy.resources.v1alpha1 import AlertRoute, Chain
from tarsy.resources.v1alpha1.alert import AlertContent


class RouteError(CommandError):
    """The body or the routes cannot be read."""


@dataclass(frozen=True, slots=True)
class RouteSource:
    """Leads to the AlertRoutes and Chains that decide.

    Args:
        configuration: files and directories with them; empty: those of the cluster.
        namespace: the namespace of the routes; None: the library.
        library_namespace: the namespace of the library.
        kubeconfig: of the cluster.
        context: the context of the kubeconfig.
    """

    configuration: Sequence[Path]
    namespace: str | None
    library_namespace: str
    kubeconfig: str | None = None
    context: str | None = None


async def show_route(body: Path, source: BodyFormat, routes_of: RouteSource, output: Literal["text", "json"]) -> int:
    """Prints the outcome of a request; returns 1 if no route matches.

    Args:
        body: the file with the body of the request.
        source: the intake endpoint.
        routes_of: where the routes are.
        output: text for people, json for programs.

    Raises:
        RouteError: the body cannot be read, or the files are wrong.
        ApiError: the cluster cannot be asked.
    """
    library_namespace = routes_of.library_namespace
    parsed, place = _body(body, source), routes_of.namespace or library_namespace
    if routes_of.configuration:
        objects, catalog = _of_files(routes_of.configuration, place)
    else:
        objects, catalog = await _of_cluster(place, library_namespace, routes_of.kubeconfig, routes_of.context)
    routes = [o for o in objects if isinstance(o, AlertRoute) and o.metadata.namespace == place]
    verdicts = match_route(routes, parsed)
    answer = answer_of(verdicts, catalog, library_namespace)
    sys.stdout.write(json.dumps(answer, indent=2) + "\n" if output == "json" else "\n".join(_lines(answer)) + "\n")
    return 0 if answer["route"] else 1


def _body(path: Path, source: BodyFormat) -> IntakeBody:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RouteError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > INTAKE_BODY_BYTES:
        raise RouteError(f"{path} is larger than {INTAKE_BODY_BYTES} bytes: the intake would refuse it with 413")
    try:
        return parse_body(source, content)
    except BadBody as bad:
        raise RouteError(f"{path}: {bad.message}; the intake would reject it ({bad.reason})") from None
    except NotAnIncident:
        raise RouteError(
            f"{path} reports neither the start nor the end of an incident; the intake would record it, and no Alert"
        ) from None


def answer_of(verdicts: Sequence[RouteMatch], catalog: Catalog, library_namespace: str) -> dict[str, Any]:
    """Returns the outcome of a request, for programs.

    Args:
        verdicts: the match of each route.
        catalog: the routes and chains.
        library_namespace: the namespace of the library.
    """
    taker = next((verdict for verdict in verdicts if verdict.matches), None)
    before = f"matches too, but {taker.route.key} takes precedence" if taker is not None else ""
    others = [{"route": v.route.key, "why": v.why_not or before} for v in verdicts if v is not taker]
    answer: dict[str, Any] = {"route": taker.route.key if taker else None, "others": others}
    if taker is None:
        return answer
    said, spec = taker.notification, taker.route.spec
    alert_type = spec.alert_type or said.alert_type
    answer["fires"] = said.firing
    answer["alert"] = {
        "namespace": target(taker.route),
        "alertType": alert_type,
        "severity": spec.severity or said.severity,
    }
    if said.labels.get(OWN_LABEL) == "true":
        answer["rejected"] = f"it is about TARSy itself (label {OWN_LABEL})"
    elif said.firing and alert_type is None:
        answer["rejected"] = "the route sets no alertType, and there is no label alertname"
    elif said.firing:
        answer |= _chain(taker.route, alert_type or "", catalog, library_namespace)
    return answer


def _chain(route: AlertRoute, alert_type: str, catalog: Catalog, library_namespace: str) -> dict[str, str]:
    content = AlertContent(alert_type=alert_type, data="body", chain_ref=route.spec.chain_ref)
    try:
        found = select(namespace=target(route), alert=content, catalog=catalog, library_namespace=library_namespace)
    except PlanInvalid as invalid:
        return {"chainProblem": "; ".join(error.message for error in invalid.errors)}
    if isinstance(found, NoChain):
        return {"chainProblem": found.message.partition(": ")[2]}
    return {"chain": found.key}


def _of_files(paths: Iterable[Path], namespace: str) -> tuple[list[AnyResource], Catalog]:
    manifests = read_files(paths, namespace)
    if manifests.problems:
        raise RouteError("; ".join(str(problem) for problem in manifests.problems))
    objects = list(manifests.objects.values())
    return objects, ResourceCatalog(objects, manifests.namespaces)


async def _of_cluster(
    namespace: str, library_namespace: str, kubeconfig: str | None, context: str | None
) -> tuple[list[AnyResource], Catalog]:
    """Reads the routes, the chains of their namespaces and of the library, and the labels of these namespaces."""
    async with await KubeClient.load(kubeconfig, context) as client:
        routes = parse_valid(AlertRoute, await client.list(AlertRoute.KIND, namespace))
        places = {place for route in routes for place in search_path(target(route), library_namespace)}
        chains: list[AnyResource] = []
        labels = {}
        for place in sorted(places):
            chains += parse_valid(Chain, await client.list(Chain.KIND, place))
            try:
                found = await client.find("Namespace", None, place)
            except ApiError as error:
                if error.reason != "Forbidden":
                    raise
                continue  # then only chains for all namespaces are known to be open
            labels[place] = (found or {}).get("metadata", {}).get("labels") or {}
    return [*routes, *chains], ResourceCatalog([*routes, *chains], labels)


def _lines(answer: dict[str, Any]) -> Iterable[str]:
    if answer["route"] is None:
        yield "No AlertRoute matches: it would be rejected (NoRoute)."
    else:
        alert = answer["alert"]
        yield f"AlertRoute {answer['route']} matches, if its sender may create Alerts in {alert['namespace']}."
        yield f"  Alert type: {alert['alertType'] or 'none'}, severity: {alert['severity'] or 'not set'}"
        if "rejected" in answer:
            yield f"  It would be rejected: {answer['rejected']}."
        elif not answer["fires"]:
            yield "  It is resolved: this is recorded, and not investigated."
        elif "chain" in answer:
            yield f"  Chain: {answer['chain']}"
        else:
            yield f"  No chain handles it, so it would wait: {answer['chainProblem']}"
    for other in answer["others"]:
        yield f"AlertRoute {other['route']}: {other['why']}"
