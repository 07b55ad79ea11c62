"""Tests answers that once differed from a real server's, as the drift report (tests/drift) found."""

import json
import re
from typing import Any

import aiohttp
import pytest

from integration.kubeapi.conftest import WIDGETS, Kubectl, widget

CORE = "/api/v1/namespaces/{namespace}"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"

pytestmark = pytest.mark.usefixtures("widgets")


def configmap(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


@pytest.mark.parametrize(
    "path",
    [
        "/apis/nothing.example.com",
        "/apis/demo.example.com/v9",
        "/apis/demo.example.com/v1/namespaces/default/nothings",
        "/apis/demo.example.com/v1/widgets/a",
    ],
)
async def test_a_place_that_no_kind_has_is_no_page(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as answer:
        assert (answer.status, await answer.text()) == (404, "404 page not found\n")


REFUSED: list[tuple[str, str, dict[str, str], object, int, str]] = [
    ("GET", "/api/v1/configmaps/a", {}, None, 404, "could not find the requested resource"),
    ("POST", "/api/v1/configmaps", {}, configmap("a"), 405, "does not allow this method"),
    ("PUT", f"{CORE}/configmaps", {}, configmap("a"), 405, "does not allow this method"),
    ("PATCH", WIDGETS, MERGE, {}, 400, "name must be provided"),
    ("GET", f"{WIDGETS}/a/nothing", {}, None, 404, 'widgets.demo.example.com "a" not found'),
    ("POST", f"{CORE}/configmaps", {"Content-Type": "text/plain"}, configmap("a"), 415, "accepted media types include"),
    ("GET", f"{CORE}/configmaps", {"Accept": "text/html"}, None, 406, "only the following media types are accepted"),
    ("GET", f"{CORE}/configmaps?fieldSelector=data.a%3Db", {}, None, 400, '^"data.a" is not a known field selector'),
    ("GET", f"{CORE}/configmaps?resourceVersionMatch=Exact", {}, None, 422, "forbidden unless resourceVersion"),
    ("GET", f"{CORE}/configmaps?resourceVersion=1&resourceVersionMatch=No", {}, None, 422, "Unsupported value"),
    ("GET", f"{CORE}/configmaps?resourceVersion=99999999", {}, None, 504, "^Timeout: Too large resource version"),
    ("POST", f"{CORE}/configmaps?fieldManager={'a' * 129}", {}, configmap("a"), 422, "fieldManager: Too long"),
    ("POST", f"{CORE}/configmaps?dryRun=Some", {}, configmap("a"), 422, "^CreateOptions.meta.k8s.io"),
    ("POST", f"{CORE}/configmaps", {}, configmap("a", data={"a/b": "c"}), 422, "a valid config key must consist of"),
    ("PATCH", f"{CORE}/configmaps/kube-root-ca.crt?force=true", MERGE, {}, 422, "force: Forbidden"),
    ("PATCH", f"{CORE}/configmaps/kube-root-ca.crt", JSON_PATCH, {}, 400, "cannot unmarshal object"),
    ("PATCH", f"{CORE}/configmaps/a?fieldManager=me", APPLY, {"metadata": {"name": "a"}}, 400, "object type: /, Kind="),
    ("PATCH", f"{CORE}/configmaps/a?fieldManager=me", APPLY, configmap("a", apiVersion="v2"), 400, "expected: v1"),
    ("DELETE", f"{CORE}/configmaps/kube-root-ca.crt?propagationPolicy=No", {}, None, 422, "Unsupported value"),
    ("POST", WIDGETS, {}, {"metadata": {"name": "a"}, "spec": {"size": 1}}, 400, "'Kind' is missing"),
    ("POST", WIDGETS, {}, {**widget("a"), "kind": "Gadget"}, 422, "kind: Invalid value: .*: must be Widget"),
    ("POST", f"{RBAC}/roles", {}, {"metadata": {"name": "a"}, "rules": [{"resources": ["pods"]}]}, 422, "verbs"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "headers", "body", "status", "message"), REFUSED)
async def test_wrong_requests_are_refused_in_the_real_apis_words(
    http: aiohttp.ClientSession,
    namespace: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: object,
    status: int,
    message: str,
) -> None:
    headers = {"Content-Type": "application/json", **headers}
    content = None if body is None else json.dumps(body)
    async with http.request(method, path.format(namespace=namespace), data=content, headers=headers) as answer:
        told = await answer.json()
        assert answer.status == status, told
    assert told["code"] == status
    assert re.search(message, told["message"]), told["message"]


async def test_null_in_a_field_that_may_not_be_null_counts_as_unset(
    http: aiohttp.ClientSession, namespace: str
) -> None:
    sent = widget("a")
    sent["spec"] |= {"parts": None, "color": None}
    async with http.post(WIDGETS.format(namespace=namespace), json=sent) as answer:
        made = await answer.json()
        assert answer.status == 201, made
    assert made["spec"] == {"size": 3, "color": "red"}


async def test_what_leaves_a_selection_is_shown_as_it_last_was(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    async with http.post(url, json=widget("a", labels={"app": "one"})) as answer:
        since = (await answer.json())["metadata"]["resourceVersion"]
    async with http.patch(f"{url}/a", json={"metadata": {"labels": {"app": "two"}}}, headers=MERGE) as answer:
        now = (await answer.json())["metadata"]["resourceVersion"]
    query = {"watch": "1", "timeoutSeconds": "1", "resourceVersion": since, "labelSelector": "app=one"}
    async with http.get(url, params=query) as answer:
        event = json.loads(await answer.content.readline())
    assert event["type"] == "DELETED"
    assert (event["object"]["metadata"]["labels"], event["object"]["metadata"]["resourceVersion"]) == (
        {"app": "one"},
        now,
    )


async def test_who_brings_a_container_manages_it(http: aiohttp.ClientSession, namespace: str) -> None:
    async with http.post(CORE.format(namespace=namespace) + "/configmaps", json=configmap("a", data={"k": "v"})) as a:
        (entry,) = (await a.json())["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
    async with http.post(WIDGETS.format(namespace=namespace), json=widget("a")) as answer:
        (entry,) = (await answer.json())["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:color": {}, "f:size": {}}}


async def test_items_of_lists_say_their_kind_only_where_the_real_api_does(
    http: aiohttp.ClientSession, namespace: str
) -> None:
    async with http.get(CORE.format(namespace=namespace) + "/configmaps") as answer:
        assert "kind" not in (await answer.json())["items"][0]
    async with http.post(WIDGETS.format(namespace=namespace), json=widget("a")):
        pass
    async with http.get(WIDGETS.format(namespace=namespace)) as answer:
        assert (await answer.json())["items"][0]["kind"] == "Widget"


async def test_an_event_is_in_the_namespace_of_its_object(http: aiohttp.ClientSession, namespace: str) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "reason": "R", "type": "Normal"}
    for about, status in (("default", 422), ("", 422), (namespace, 201)):
        sent = {**event, "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": about}}
        async with http.post(CORE.format(namespace=namespace) + "/events", json=sent) as answer:
            assert answer.status == status, await answer.text()


def test_columns_are_those_of_a_real_server(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("create", "rolebinding", "b", "--clusterrole=view", "--user=ana", "-n", namespace).returncode == 0
    wide = kubectl("get", "rolebinding", "b", "-o", "wide", "-n", namespace).stdout.splitlines()
    assert wide[0].split() == ["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS"]
    assert wide[1].split()[-1] == "ana"
    assert kubectl("run", "p", "--image=busybox", "-n", namespace).returncode == 0
    assert "NOMINATED NODE" in kubectl("get", "pods", "-o", "wide", "-n", namespace).stdout
