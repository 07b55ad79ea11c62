"""Tests authorization: every route at both ports and every WebSocket channel, as every kind of user.

A route or channel that `MAY` does not name fails the first tests; so nothing is served that nobody decided about. The
server is put together as `tarsy run` does it, with the rights of the shipped manifests, and people have the shipped
roles.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import asyncpg
import pytest
from aiohttp import web

import rights
from apis import LocalApi
from e2e.waiting import until
from integration.http.doors import OPERATOR, SYSTEM, client_tls, install, uninstall
from integration.store.build import new_run
from tarsy.app.http import http_server
from tarsy.app.process import ProcessContext
from tarsy.app.settings.processes import OperatorSettings
from tarsy.app.settings.serving_topics import HttpApiSettings, RecordApiSettings
from tarsy.app.settings.work_topics import DatabaseSettings
from tarsy.http.aggregated import add_discovery
from tarsy.http.errors import BadRequest
from tarsy.http.live.authorization import read_topic
from tarsy.http.mcp_endpoint.tools import BY_NAME
from tarsy.http.models import AGGREGATED_PREFIX, DIRECT_PREFIX
from tarsy.http.route import Route
from tarsy.http.server import HttpServer
from tarsy.http.table import all_routes
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.observe.metrics import Metrics
from tarsy.store.runs.lifecycle import NewRun, Runs
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.objects import put

ROLES = {
    "viewer": "tarsy-viewer",
    "investigator": "tarsy-investigator",
    "author": "tarsy-author",
    "tracer": "tarsy-tracer",
    "approver": "tarsy-approver",
}
STRANGER, ADMINISTRATOR, NOBODY, BAD_TOKEN = "viewer of another namespace", "administrator", "nobody", "bad token"
KNOWN = frozenset({*ROLES, STRANGER, ADMINISTRATOR})
EVERYBODY = KNOWN | {NOBODY, BAD_TOKEN}
READ = frozenset({"viewer", "investigator", ADMINISTRATOR})
WRITE = frozenset({"investigator", ADMINISTRATOR})
TRACE = frozenset({"tracer", ADMINISTRATOR})
CONFIGURATION = READ | {"author"}
ALONE = frozenset({ADMINISTRATOR})
WAITING = frozenset({"approver", "tracer", ADMINISTRATOR})
MAY = {
    "submitAlert": WRITE,
    "planAlert": WRITE,  # and the right to use the chain: test_plans.py
    "getAlert": READ,
    "listInvestigations": READ,
    "listInvestigations everywhere": ALONE,
    "getInvestigation": READ,
    "getInvestigationRequest": READ,
    "listUnstarted": READ,  # alerts are a right of their own: test_unstarted.py
    "listUnstarted everywhere": ALONE,
    "startReplay": WRITE,
    "startRetry": WRITE,
    "cancelInvestigation": WRITE,
    "concludeInvestigation": WRITE,
    "cancelChatMessage": WRITE,
    "concludeChatMessage": WRITE,
    "getTimeline": READ,
    "getPrecedents": READ,  # those of another namespace need rights there: test_precedents.py
    "getEvents": READ,
    "followByWebSocket": KNOWN,  # each subscription is a right of its own: CHANNELS
    "getTrace": TRACE,
    "getModelCall": TRACE,
    "getToolCall": TRACE,
    "getCassette": TRACE,
    "compareInvestigations": ALONE,  # the timeline and the trace: no role of this test has both
    "getSeal": TRACE,
    "getChanges": READ,  # each kind of object is a right of its own: test_evidence.py
    "getTriage": READ,
    "getVerdict": READ,
    "getInvestigationChanges": READ,
    "listChatMessages": READ,
    "askQuestion": WRITE,
    "listAlertTypes": CONFIGURATION,
    "listAlertTypes everywhere": ALONE,
    "listChains": CONFIGURATION,
    "listChains everywhere": ALONE,
    "listMcpServers": CONFIGURATION,
    "listMcpServers everywhere": ALONE,
    "listLlmProviders": CONFIGURATION,
    "listLlmProviders everywhere": ALONE,
    "listEvalSuites": CONFIGURATION,
    "listEvalSuites everywhere": ALONE,
    "getEvalSuite": READ,  # and what it tells of runs
    "getEvalRun": READ,
    "listToolApprovals": WAITING,
    "listToolApprovals everywhere": ALONE,
    "getToolApproval": WAITING,
    "getToolApprovalEvidence": WAITING,
    "listReviews": READ,
    "listReviews everywhere": ALONE,
    "listNamespaceReviews": READ,
    "getReview": READ,
    "listCalibration": READ,
    "listCalibration everywhere": ALONE,
    "listNamespaceCalibration": READ,
    "getScore": READ,
    "requestScore": WRITE,
    "getSuiteScores": READ,
    "requestSuiteScores": frozenset({"author", ADMINISTRATOR}),
    "createReviews": ALONE,  # and who has the role tarsy-reviewer: test_reviews.py
    "decideToolApproval": frozenset({"approver", ADMINISTRATOR}),  # and what the policy asks: test_approvals.py
    "listInvestigationQuotas": READ,
    "listInvestigationQuotas everywhere": ALONE,
    "listAlertSchedules": CONFIGURATION,
    "listAlertSchedules everywhere": ALONE,
    "listRunbooks": CONFIGURATION,
    "listRunbooks everywhere": ALONE,
    "getChainRunbook": CONFIGURATION,  # a ConfigMap is a right of its own: test_runbooks.py
    "getDefaultRunbook": CONFIGURATION,
    "listSkills": CONFIGURATION,
    "listSkills everywhere": ALONE,
    "getSkillText": CONFIGURATION,  # a ConfigMap is a right of its own: test_skills.py
    "getServerTools": CONFIGURATION,
    "getUsage": READ,
    "getUsage everywhere": ALONE,
    "getDailyUsage": READ,
    "getDailyUsage everywhere": ALONE,
    "getQuality": READ,
    "getQuality everywhere": ALONE,
    "getQueue": READ,
    "getQueue everywhere": ALONE,
    "getNamespaceQueue": READ,
    "getWorkers": ALONE,
    "listWarnings": CONFIGURATION,
    "listWarnings everywhere": ALONE,
    "listConfiguration": CONFIGURATION,  # each kind is a right of its own: test_configured_objects.py
    "listConfiguration everywhere": ALONE,
    "getConfigurationActivity": READ,
    "getConfigurationActivity everywhere": ALONE,
    "listConfigurationRuns": READ,  # and to list the kind
    "listConfigurationRuns everywhere": ALONE,
    "listObjects": CONFIGURATION,  # each kind is a right of its own: test_health_over_time.py
    "listObjects everywhere": ALONE,
    "listNamespaceObjects": CONFIGURATION,
    "listTransitions": CONFIGURATION,
    "listTransitions everywhere": ALONE,
    "listNamespaceTransitions": CONFIGURATION,
    "getOpenapi": EVERYBODY,
    "signIn": KNOWN,
    "getSession": KNOWN,
    "signOut": EVERYBODY,
    "signInByCode": EVERYBODY,  # there is no code here
    "listNamespaces": KNOWN,  # each is asked about: tests of the page's session
}
"""Who may ask each route: in the namespace, or cluster-wide where it is called `everywhere`."""
CHANNELS = {
    "investigations": ALONE,
    "investigations:NAMESPACE": READ,
    "investigation:NAMESPACE/NAME": READ,
}
"""Who may subscribe to what."""
SENDERS = ("alertmanager", "json", "text", "grafana", "pagerduty", "datadog", "argocd", "flux")
INTAKE = {f"/intake/v1/{sender}" for sender in SENDERS}
BESIDE = {"/health", "/ready", "/", "/page/assets/{name}", "/mcp"} | INTAKE
"""What the direct door serves beside the table: no identity, or one of its own (tests of the intake)."""
BODIES = {
    "submitAlert": {"alertType": "none", "data": "x"},
    "askQuestion": {"question": "Why?"},
    "planAlert": {"alertType": "none"},
    "startReplay": {"onMiss": "Refuse"},
    "startRetry": {"chain": "other"},
    "signInByCode": {"code": "0123456789abcdef"},
    "requestSuiteScores": {"days": 7},
    "createReviews": {"action": "Claim", "investigations": ["i1"]},
    "decideToolApproval": {"decision": "Approve", "argumentsDigest": f"sha256:{'a' * 64}"},
}
QUERIES = {
    "compareInvestigations": "other=i1",
    "getVerdict": "target=deploy/checkout",
    "listConfigurationRuns": "kind=Chain&ofNamespace={namespace}&ofName=none",
}
"""Query parameters that a route requires."""
GONE = "not-on-record"


@dataclass
class Person:
    """Somebody as both doors know them."""

    name: str
    token: str | None
    user: str | None = None
    groups: tuple[str, ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass
class Scene:
    """A server, a namespace with an investigation on record, and people."""

    api: LocalApi
    kube: KubeClient
    server: HttpServer
    http: aiohttp.ClientSession
    namespace: str
    people: list[Person] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def request(self, route: Route, *, everywhere: bool, name: str) -> tuple[str, dict[str, Any]]:
        """The path of a route below its prefix, and what goes with the request."""
        path = route.path.replace("{namespace}", self.namespace).replace("{name}", name)
        path = path.replace("{id}", str(uuid.UUID(int=1)))
        if _is_for_namespaces(route) and not everywhere:
            path += f"?namespace={self.namespace}"
        if needed := QUERIES.get(route.operation):
            path += f"{'&' if '?' in path else '?'}{needed.replace('{namespace}', self.namespace)}"
        return path, {"json": BODIES[route.operation]} if route.body else {}


def _is_for_namespaces(route: Route) -> bool:
    return route.query is not None and "namespace" in route.query.model_fields


def _asked() -> Iterator[tuple[str, Route, bool]]:
    """Every route, twice where it can also be asked cluster-wide."""
    for route in all_routes():
        yield route.operation, route, False
        if _is_for_namespaces(route):
            yield f"{route.operation} everywhere", route, True


@pytest.fixture(scope="module")
def record_port(tarsy_api: LocalApi) -> Iterator[int]:
    port = free_port()
    asyncio.run(install(tarsy_api, port))
    yield port
    asyncio.run(uninstall(tarsy_api))


@pytest.fixture
async def scene(
    tarsy_api: LocalApi, record_port: int, kube: KubeClient, records: asyncpg.Pool, database_url: str, namespace: str
) -> AsyncIterator[Scene]:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}"]
    settings = OperatorSettings(
        database=DatabaseSettings(url=database_url),
        http=HttpApiSettings(host="127.0.0.1", port=0),
        record_api=RecordApiSettings(port=record_port),
    )
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(await KubeClient.load(tarsy_api.kubeconfig_for(OPERATOR, groups)))
        nothing = cast(Any, None)
        world = ProcessContext(records, client, Secrets(client), nothing, nothing, nothing, Metrics(), nothing, nothing)
        server = await stack.enter_async_context(http_server(settings, world, asyncio.Event()))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        await stack.enter_async_context(_running(server))
        scene = Scene(tarsy_api, kube, server, http, namespace)
        await _on_record(records, kube, namespace)
        scene.people = [person async for person in _people(kube, namespace)]
        await until("the Kubernetes API passes requests on", lambda: _is_passed_on(kube))
        yield scene


@asynccontextmanager
async def _running(server: HttpServer) -> AsyncIterator[None]:
    running = asyncio.create_task(server.run())
    try:
        async with asyncio.timeout(60):
            await server.serving()
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


async def _is_passed_on(kube: KubeClient) -> bool:
    try:
        await kube.read(AGGREGATED_PREFIX)
    except ApiError:
        return False
    return True


async def _on_record(pool: asyncpg.Pool, kube: KubeClient, namespace: str) -> None:
    uid = (await kube.get("Namespace", None, namespace))["metadata"]["uid"]
    run = new_run(namespace=namespace, name="i1")
    values = {name: getattr(run, name) for name in NewRun.__dataclass_fields__}
    await Runs(pool).accept(NewRun(**{**values, "namespace_uid": uid}))


async def _people(kube: KubeClient, namespace: str) -> AsyncIterator[Person]:
    """Everybody, once the authorizer knows their roles."""
    other = f"{namespace}-other"
    await put(kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    yield Person(NOBODY, None)
    yield Person(BAD_TOKEN, "e30.e30.bad")
    places = {**{name: (role, namespace) for name, role in ROLES.items()}, STRANGER: (ROLES["viewer"], other)}
    for name, (role, space) in {**places, ADMINISTRATOR: ("cluster-admin", "")}.items():
        account = name.replace(" ", "-")
        meta = {"name": account, "namespace": namespace}
        await put(kube, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        called = f"{account}-{uuid.uuid4().hex[:6]}"
        bound = rights.binding(called, space, "ClusterRole", role, rights.account(account, namespace))
        await rights.put_rights(kube, [bound])
        user = f"system:serviceaccount:{namespace}:{account}"
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        yield Person(name, await kube.create_token(namespace, account), user, groups)


def test_every_route_is_decided_about() -> None:
    assert {key for key, _, _ in _asked()} == set(MAY)


def test_every_channel_is_decided_about() -> None:
    with pytest.raises(BadRequest) as refused:
        read_topic("none:at/all")
    said = refused.value.message.partition("the channels are ")[2]
    assert set(re.split(r", | and ", said)) == set(CHANNELS)


def test_a_route_has_a_permission_or_says_that_it_is_public_or_asks_by_itself() -> None:
    alone = {route.operation for route in all_routes() if route.permission is None}
    public = {"getOpenapi", "signOut", "signInByCode"}
    assert alone == public | {"followByWebSocket", "listNamespaces", "signIn", "getSession"}
    assert {route.operation for route in all_routes() if route.public} == public


def test_only_records_evidence_and_tools_of_servers_are_served_through_the_kubernetes_api() -> None:
    passed_on = [route for route in all_routes() if route.aggregated]
    assert {route.operation for route in passed_on} == {
        "listCalibration",
        "listNamespaceCalibration",
        "getTimeline",
        "getPrecedents",
        "getEvents",
        "getTrace",
        "getModelCall",
        "getToolCall",
        "getCassette",
        "compareInvestigations",
        "getSeal",
        "getServerTools",
        "getChanges",
        "getTriage",
        "getToolApprovalEvidence",
        "listReviews",
        "listNamespaceReviews",
        "getReview",
        "getScore",
        "getSuiteScores",
        "getSkillText",
        "getQueue",
        "getNamespaceQueue",
        "listObjects",
        "listNamespaceObjects",
        "listTransitions",
        "listNamespaceTransitions",
        "getWorkers",
    }
    for route in passed_on:
        assert route.method == "GET" and route.permission is not None
        assert route.permission.group == "record.tarsy.dev"
        # The Kubernetes API asks by the path: without a name verb list, else get; a further part is the subresource.
        resource, *name = route.path.removeprefix("/namespaces/{namespace}")[1:].split("/")
        assert resource == route.permission.resource
        assert route.permission.verb == ("get" if name else "list")
        assert (name[1] if name else "") == route.permission.subresource


async def test_nothing_is_served_but_the_table_and_what_is_listed(scene: Scene) -> None:
    table = {DIRECT_PREFIX + route.path for route in all_routes()}
    assert scene.server.direct is not None
    assert {resource.canonical for resource in scene.server.direct.router.resources()} == table | BESIDE


async def test_authorization_matrix(scene: Scene) -> None:
    """At the direct door: 401 to who is unknown, 403 to who may not, whether or not there is such an investigation."""
    wrong = []
    for key, route, everywhere in _asked():
        for person in scene.people:
            answers = set()
            for name in ("i1", GONE) if "{name}" in route.path else ("i1",):
                path, more = scene.request(route, everywhere=everywhere, name=name)
                url = scene.url + DIRECT_PREFIX + path
                async with scene.http.request(route.method, url, headers=person.headers, **more) as answer:
                    answers.add((answer.status, await answer.text() if answer.status in (401, 403) else ""))
            statuses = {status for status, _ in answers}
            refused = {401} if person.name in (NOBODY, BAD_TOKEN) else {403}
            if person.name in MAY[key]:
                fine = not statuses & {401, 403, 500, 503}
            else:
                fine = statuses == refused and len(answers) == 1
            if not fine:
                wrong.append(f"{key} as {person.name}: {sorted(answers)}")
    assert wrong == []


@pytest.mark.heavy("the same matrix past the API server; the matrix itself is beside it")
async def test_authorization_matrix_through_the_kubernetes_api(scene: Scene) -> None:
    """By token through the API server, and past it by the front proxy's word, which shows that we ask ourselves."""
    pki = scene.api.ca_file.parent
    front = client_tls(pki / "front-proxy-client.crt", pki / "front-proxy-client.key")
    door = f"https://127.0.0.1:{scene.server.record_port}"
    wrong = []
    for key, route, everywhere in _asked():
        if not route.aggregated or (not everywhere and _is_for_namespaces(route)):
            continue  # a path without a namespace is authorized cluster-wide, whatever its query names
        for person in scene.people:
            ways = [(scene.api.url, client_tls(), person.headers)]
            if person.user is not None:
                ways.append((door, front, {"X-Remote-User": person.user, "X-Remote-Group": person.groups[1]}))
            for base, tls, headers in ways:
                for name in ("i1", GONE):
                    path, _ = scene.request(route, everywhere=everywhere, name=name)
                    url = base + AGGREGATED_PREFIX + path
                    async with scene.http.get(url, headers=headers, ssl=tls) as answer:
                        refused = answer.status in (401, 403)
                        if refused == (person.name in MAY[key]) or answer.status >= 500:
                            wrong.append(f"{key} of {name} as {person.name} at {base}: {await answer.text()}")
    assert wrong == []


async def test_authorization_matrix_of_channels(scene: Scene) -> None:
    """Each channel as everybody; who may not is told the same whether or not there is such an investigation."""
    wrong = []
    for channel, allowed in CHANNELS.items():
        for person in scene.people:
            told = set()
            for name in ("i1", GONE) if "NAME" in channel.replace("NAMESPACE", "") else ("i1",):
                told.add(await _subscribed(scene, person, channel, name))
            if person.name in allowed:
                fine = ("subscribed", "") in told and not any(reason == "Forbidden" for _, reason in told)
            else:
                fine = told == {("401", "") if person.name in (NOBODY, BAD_TOKEN) else ("error", "Forbidden")}
            if not fine:
                wrong.append(f"{channel} as {person.name}: {sorted(told)}")
    assert wrong == []


async def _subscribed(scene: Scene, person: Person, channel: str, name: str) -> tuple[str, str]:
    """What is told to who subscribes: its type and, of an error, the reason."""
    wanted = channel.replace("NAMESPACE", scene.namespace).replace("NAME", name)
    try:
        async with scene.http.ws_connect(f"{scene.url}{DIRECT_PREFIX}/ws", headers=person.headers) as ws:
            await ws.send_str(json.dumps({"action": "subscribe", "channel": wanted}))
            async with asyncio.timeout(60):
                told = json.loads(await ws.receive_str())
            return told["type"], str(told.get("error", told).get("reason", ""))
    except aiohttp.WSServerHandshakeError as error:
        return str(error.status), ""


TOOL_CALLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "submit_alert": ("submitAlert", {"alert_type": "none", "data": "x"}),
    "list_investigations": ("listInvestigations", {"namespaces": ["NAMESPACE"]}),
    "search": ("listInvestigations", {"text": "disk", "namespaces": ["NAMESPACE"]}),
    "get_investigation": ("getInvestigation", {"name": "i1"}),
    "why": ("getTimeline", {"name": "i1"}),
    "timeline": ("getTimeline", {"name": "i1"}),
    "wait": ("getTimeline", {"name": "i1", "seconds": 1}),
    "changes": ("getChanges", {}),
    "ask": ("askQuestion", {"name": "i1", "question": "Why?"}),
    "answers": ("listChatMessages", {"name": "i1"}),
    "plan": ("planAlert", {"alert_type": "none"}),
}
"""Each tool of the MCP endpoint: the route that decides who may call it, and arguments."""


async def test_authorization_matrix_of_the_tools_at_the_mcp_endpoint(scene: Scene) -> None:
    """A tool is refused to exactly those to whom its route is, in the words of the route."""
    assert set(TOOL_CALLS) == set(BY_NAME)
    wrong = []
    for tool, (operation, arguments) in TOOL_CALLS.items():
        given = {key: [scene.namespace] if value == ["NAMESPACE"] else value for key, value in arguments.items()}
        if "namespaces" not in given:
            given["namespace"] = scene.namespace
        for person in scene.people:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
            headers = {**person.headers, "Accept": "application/json, text/event-stream"}
            async with scene.http.post(f"{scene.url}/mcp", json=call, headers=headers) as answer:
                if person.name in (NOBODY, BAD_TOKEN):
                    fine, told = answer.status == 401, await answer.text()
                else:
                    result = (await answer.json())["result"]
                    told = result["content"][0]["text"]
                    refused = result.get("isError", False) and " may not " in told
                    fine = answer.status == 200 and refused != (person.name in MAY[operation])
            if not fine:
                wrong.append(f"{tool} as {person.name}: {told[:300]}")
    assert wrong == []


async def test_what_discovery_tells_is_for_the_kubernetes_api(scene: Scene) -> None:
    app = web.Application()
    add_discovery(app, cast(Any, None))
    paths = {resource.canonical for resource in app.router.resources()}
    for path in paths:
        async with scene.http.get(scene.url + path) as answer:
            assert answer.status == 404, path
