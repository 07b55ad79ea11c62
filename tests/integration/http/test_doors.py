"""Tests authentication at both ports on a Kubernetes API, and that no caller can impersonate another."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from apis import LocalApi
from e2e.waiting import until
from integration.http.doors import Doors, aggregated, certificate_of, client_tls, install, open_doors, uninstall
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.apiserver.process import free_port

VIEWER = "tarsy-viewer"


@pytest.fixture(scope="module")
def record_port(tarsy_api: LocalApi) -> Iterator[int]:
    """The port that the APIService leads to."""
    port = free_port()
    asyncio.run(install(tarsy_api, port))
    yield port
    asyncio.run(uninstall(tarsy_api))


@pytest.fixture
async def doors(tarsy_api: LocalApi, record_port: int, kube: KubeClient, records: asyncpg.Pool) -> AsyncIterator[Doors]:
    async with open_doors(tarsy_api, record_port, kube, records) as doors:
        yield doors


async def uid_of(kube: KubeClient, namespace: str) -> str:
    return str((await kube.get("Namespace", None, namespace))["metadata"]["uid"])


async def test_a_client_certificate_is_known_through_the_kubernetes_api(
    doors: Doors, kube: KubeClient, namespace: str
) -> None:
    person = f"ann-{uuid.uuid4().hex[:6]}"
    await doors.bind(namespace, VIEWER, {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": person})
    async with await KubeClient.load(doors.api.kubeconfig_for(person, ["on-call", "päger"])) as ann:
        seen: dict[str, Any] = {}

        async def allowed() -> bool:
            try:
                seen.update(await ann.read(aggregated(namespace)))
            except ApiError as error:
                assert error.reason == "Forbidden", error.message
                return False
            return True

        await until("the viewer reads", allowed)
    assert seen["username"] == person
    assert {"on-call", "päger", "system:authenticated"} <= set(seen["groups"])
    assert seen["namespaceUid"] == await uid_of(kube, namespace)


async def test_a_token_is_known_at_the_direct_door_and_through_the_kubernetes_api(
    doors: Doors, kube: KubeClient, namespace: str
) -> None:
    token = await doors.account(namespace, "ann")
    assert (await doors.direct(namespace, token))[0] == 403
    await doors.bind(namespace, VIEWER, {"kind": "ServiceAccount", "name": "ann", "namespace": namespace})

    async def allowed() -> bool:
        return (await doors.direct(namespace, token))[0] == 200

    await until("the viewer reads", allowed)
    _, direct = await doors.direct(namespace, token)
    async with kube.without_identity() as nobody:
        passed_on = await nobody.bearing(token).read(aggregated(namespace))
    assert direct["username"] == passed_on["username"] == f"system:serviceaccount:{namespace}:ann"
    assert set(direct["groups"]) == set(passed_on["groups"])


async def test_nobody_and_a_bad_token_are_refused_at_both_doors(doors: Doors, kube: KubeClient, namespace: str) -> None:
    for token in (None, "bad", "e30.e30.e30"):
        status, body = await doors.direct(namespace, token)
        assert (status, body["error"]["reason"]) == (401, "Unauthorized")
    async with kube.without_identity() as nobody:
        for client, reasons in ((nobody, {"Forbidden", "Unauthorized"}), (nobody.bearing("bad"), {"Unauthorized"})):
            with pytest.raises(ApiError) as refused:
                await client.read(aggregated(namespace))
            assert refused.value.reason in reasons


async def test_headers_of_the_front_proxy_mean_nothing_at_the_direct_door(doors: Doors, namespace: str) -> None:
    forged = {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"}
    assert (await doors.direct(namespace, headers=forged))[0] == 401
    token = await doors.account(namespace, "ann")
    assert (await doors.direct(namespace, token, headers=forged))[0] == 403


async def test_the_kubernetes_api_passes_no_forged_headers_on(doors: Doors, namespace: str) -> None:
    token = await doors.account(namespace, "ann")
    await doors.bind(namespace, VIEWER, {"kind": "ServiceAccount", "name": "ann", "namespace": namespace})
    forged = {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters", "X-Remote-Extra-A": "b"}
    seen: list[dict[str, Any]] = []

    async def allowed() -> bool:
        headers = {"Authorization": f"Bearer {token}", **forged}
        url = doors.api.url + aggregated(namespace)
        async with doors.http.get(url, headers=headers, ssl=client_tls()) as answer:
            seen.append(await answer.json())
            return answer.status == 200

    await until("the viewer reads", allowed)
    assert seen[-1]["username"] == f"system:serviceaccount:{namespace}:ann"
    assert "system:masters" not in seen[-1]["groups"] and "a" not in seen[-1]["extra"]


async def test_only_the_front_proxy_can_connect_to_the_aggregated_door(
    doors: Doors, namespace: str, tmp_path: Path
) -> None:
    pki = doors.api.ca_file.parent
    headers = {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"}
    for tls in (client_tls(), client_tls(*certificate_of(doors.api.kubeconfig, tmp_path))):
        with pytest.raises((aiohttp.ClientError, OSError)):
            await doors.record(namespace, tls, headers)
    front = client_tls(pki / "front-proxy-client.crt", pki / "front-proxy-client.key")
    assert (await doors.record(namespace, front, headers))[0] == 200


async def test_the_aggregated_door_asks_by_itself_what_the_named_caller_may(doors: Doors, namespace: str) -> None:
    pki = doors.api.ca_file.parent
    front = client_tls(pki / "front-proxy-client.crt", pki / "front-proxy-client.key")
    for space in (namespace, "no-such-namespace"):
        status, body = await doors.record(space, front, {"X-Remote-User": "mallory"})
        assert (status, body["kind"], body["reason"], body["code"]) == (403, "Status", "Forbidden", 403)
    status, body = await doors.record(namespace, front, {})
    assert (status, body["reason"]) == (401, "Unauthorized")
    status, body = await doors.record(namespace, front, {"Authorization": "Bearer anything"})
    assert (status, body["reason"]) == (401, "Unauthorized")


async def test_what_is_written_is_written_as_the_caller_even_where_the_operator_has_a_certificate(
    doors: Doors, kube: KubeClient, namespace: str
) -> None:
    token = await doors.account(namespace, "ann")
    subject = {"kind": "ServiceAccount", "name": "ann", "namespace": namespace}
    await doors.bind(namespace, VIEWER, subject)
    made = {"method": "POST", "params": {"configMap": "made"}}

    async def may_read() -> bool:
        return (await doors.direct(namespace, token))[0] == 200

    await until("the viewer reads", may_read)
    status, _ = await doors.direct(namespace, token, **made)  # type: ignore[arg-type]
    assert status == 403
    assert await kube.find("ConfigMap", namespace, "made") is None
    await doors.bind(namespace, "edit", subject)
    await doors.bind(namespace, "system:aggregate-to-edit", subject)

    async def may_write() -> bool:
        return (await doors.direct(namespace, token, **made))[0] == 201  # type: ignore[arg-type]

    await until("the editor writes", may_write)
    assert await kube.find("ConfigMap", namespace, "made") is not None


async def test_a_right_that_is_taken_away_is_gone_at_both_doors(doors: Doors, kube: KubeClient, namespace: str) -> None:
    token = await doors.account(namespace, "ann")
    await doors.bind(namespace, VIEWER, {"kind": "ServiceAccount", "name": "ann", "namespace": namespace})

    async def status_is(wanted: int) -> bool:
        return (await doors.direct(namespace, token))[0] == wanted

    await until("the viewer reads", lambda: status_is(200))
    await kube.delete("RoleBinding", namespace, f"{VIEWER}-ann")
    await until("the viewer is refused", lambda: status_is(403))
    async with kube.without_identity() as nobody:
        with pytest.raises(ApiError) as refused:
            await nobody.bearing(token).read(aggregated(namespace))
    assert refused.value.reason == "Forbidden"


async def test_while_the_kubernetes_api_is_away_nobody_new_comes_in_and_all_come_in_again(
    doors: Doors, namespace: str
) -> None:
    token, other = await doors.account(namespace, "ann"), await doors.account(namespace, "bob")
    await doors.bind(namespace, VIEWER, {"kind": "ServiceAccount", "name": "ann", "namespace": namespace})

    async def status_is(wanted: int) -> bool:
        return (await doors.direct(namespace, token))[0] == wanted

    await until("the viewer reads", lambda: status_is(200))
    await asyncio.to_thread(doors.api.stop_apiserver)
    try:
        for known in (token, other):
            status, body = await doors.direct(namespace, known)
            assert (status, body["error"]["reason"]) == (503, "ServiceUnavailable")
    finally:
        await asyncio.to_thread(doors.api.start_apiserver)
    await until("the viewer reads again", lambda: status_is(200))


async def test_the_kubernetes_api_finds_all_it_looks_for(doors: Doors, kube: KubeClient) -> None:
    async def available() -> bool:
        found = await kube.get("APIService", None, "v1alpha1.record.tarsy.dev")
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)

    await until("the APIService is available", available)
    listed = await kube.read("/apis/record.tarsy.dev/v1alpha1")
    assert {resource["name"]: resource["verbs"] for resource in listed["resources"]} == {
        "calibration": ["list"],
        "changes": ["list"],
        "evalsuites/scores": ["get"],
        "investigations/events": ["get"],
        "investigations/review": ["get"],
        "investigations/score": ["get"],
        "investigations/timeline": ["get"],
        "investigations/trace": ["get"],
        "mcpservers/tools": ["get"],
        "objects": ["list"],
        "queue": ["list"],
        "reviews": ["list"],
        "skills/text": ["get"],
        "toolapprovals/evidence": ["get"],
        "transitions": ["list"],
        "triage": ["list"],
        "workers": ["list"],
    }
    group = await kube.read("/apis/record.tarsy.dev")
    assert group["preferredVersion"]["groupVersion"] == "record.tarsy.dev/v1alpha1"
    with pytest.raises(ApiError) as missing:
        await kube.read("/apis/record.tarsy.dev/v1alpha1/namespaces/default/investigations")
    assert missing.value.reason == "NotFound"


async def test_readiness_and_health_are_for_everybody(doors: Doors) -> None:
    for path, said in (("/health", "ok"), ("/ready", "ready")):
        async with doors.http.get(f"http://127.0.0.1:{doors.server.port}{path}") as answer:
            assert (answer.status, await answer.json()) == (200, {"status": said})
