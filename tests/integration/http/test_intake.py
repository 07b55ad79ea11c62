"""Tests notifications on the wire, with a Kubernetes API, Postgres, tokens, passwords and signatures."""

import asyncio
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from integration.http.door import CREATE, Door
from tarsy.kube.client import ApiError, KubeClient
from tarsy.observe.metric_table import UNROUTED
from tarsy.store.intake import Intake

LIMIT = 1_048_576


def group(*alerts: dict[str, Any], status: str = "firing", key: str = '{}:{alertname="Disk"}') -> dict[str, Any]:
    found = alerts or (fires(),)
    return {"version": "4", "groupKey": key, "status": status, "receiver": "tarsy", "alerts": list(found)}


def fires(minute: int = 0, status: str = "firing", **labels: str) -> dict[str, Any]:
    named = {"alertname": "DiskFull", "severity": "critical", **labels}
    begun = f"2026-01-01T12:{minute:02}:00.123456789Z"
    return {"status": status, "labels": named, "annotations": {"text": "the disk is full"}, "startsAt": begun}


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(name, password)}


async def test_notification_becomes_an_alert_of_its_sender(door: Door) -> None:
    await door.route(chainRef={"name": "disks"}, budget={"tokens": 1000})
    status, said = await door.send(group())
    assert (status, said["fate"], said["namespace"]) == (202, "investigated", door.namespace)
    (alert,) = await door.alerts()
    spec = alert["spec"]
    assert alert["metadata"]["name"] == said["alert"]
    assert alert["metadata"]["name"].startswith("diskfull-")
    assert alert["metadata"]["annotations"]["tarsy.dev/alert-route"] == f"{door.namespace}/all"
    assert (spec["alertType"], spec["severity"], spec["chainRef"]) == ("DiskFull", "Critical", {"name": "disks"})
    assert spec["budget"] == {"tokens": 1000}
    assert json.loads(spec["data"])["alerts"][0]["annotations"] == {"text": "the disk is full"}
    assert spec["author"]["username"] == f"system:serviceaccount:{door.namespace}:prometheus"
    assert spec["incidentKey"].endswith("@2026-01-01T12:00:00.123456+00:00")


async def test_repeat_resend_and_end_make_no_other_alert(door: Door) -> None:
    await door.route()
    first = await door.send(group())
    assert await door.send(group()) == first
    assert (await door.send(group(fires(), fires(3))))[1]["fate"] == "folded"
    status, said = await door.send(group(fires(status="resolved"), status="resolved"))
    assert (status, said["fate"], said["alert"]) == (200, "resolved", first[1]["alert"])
    assert len(await door.alerts()) == 1
    assert [fate for fate, _ in await door.rows()] == ["investigated", "folded", "resolved"]
    assert (await door.send(group(fires(9))))[0] == 202
    assert len(await door.alerts()) == 2


async def test_secrets_are_masked_before_anything_is_written(door: Door) -> None:
    await door.route(alertType="Text")
    await door.send(b"login failed with password: hunter22hunter", "text")
    (alert,) = await door.alerts()
    assert "hunter22" not in json.dumps(alert)
    assert "[MASKED_PASSWORD]" in alert["spec"]["data"]


async def test_masking_is_that_of_the_namespace(door: Door) -> None:
    own = {"name": "ticket", "pattern": "TICKET-[0-9]+", "replacement": "[TICKET]"}
    await door.put("InvestigationDefaults", "default", {"alertMasking": {"customPatterns": [own]}})
    await door.route(alertType="Text")
    await door.send(b"see TICKET-4711", "text")
    assert (await door.alerts())[0]["spec"]["data"] == "see [TICKET]"


async def test_large_body_is_kept_beside_the_record(door: Door) -> None:
    await door.route(alertType="Text")
    text = "the disk is full. " * 20_000
    assert (await door.send(text.encode(), "text"))[0] == 202
    (alert,) = await door.alerts()
    record = alert["spec"]["dataFrom"]["record"]
    assert (record["sizeBytes"], record["digest"]) == (len(text), hashlib.sha256(text.encode()).hexdigest())
    assert record["preview"].startswith("the disk is full. ")
    assert await Intake(door.pool).body(door.namespace, record["digest"]) == text


async def test_largest_body_is_taken_and_one_byte_more_is_not(door: Door) -> None:
    await door.route(alertType="Text")
    assert (await door.send(b"x" * LIMIT, "text"))[0] == 202
    status, said = await door.send(b"x" * (LIMIT + 1), "text")
    assert (status, said["error"]["reason"]) == (413, "RequestEntityTooLarge")
    assert (await door.rows())[-1] == ("rejected", "TooLarge")
    assert await door.pool.fetchval("SELECT size FROM notification ORDER BY id DESC LIMIT 1") == LIMIT + 1


@pytest.mark.parametrize(
    ("source", "content", "reason", "sentence"),
    [
        ("json", b"{", "NotJson", "not valid JSON"),
        ("json", b"[1]", "Invalid", "not an object"),
        ("json", b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "TooDeep", "at most 64 levels"),
        ("json", b"[" * 500_000, "TooDeep", "at most 64 levels"),
        ("text", b"\xff\xfe", "NotUtf8", "not valid UTF-8 (byte 0)"),
        ("text", b" \n", "Empty", "empty"),
        ("alertmanager", b'{"version": "3"}', "Invalid", "version"),
        ("alertmanager", json.dumps(group() | {"alerts": []}).encode(), "Invalid", "alerts"),
        ("alertmanager", b'{"password": "hunter22"}', "Invalid", "version"),
    ],
)
async def test_body_that_cannot_be_read_is_rejected_by_a_sentence(
    door: Door, source: str, content: bytes, reason: str, sentence: str
) -> None:
    status, said = await door.send(content, source)
    assert status == 400
    assert sentence in said["error"]["message"]
    assert "hunter22" not in said["error"]["message"]
    assert await door.rows() == [("rejected", reason)]


async def test_alert_that_no_route_takes_is_rejected_with_2xx_and_counted(door: Door) -> None:
    await door.route(matchers=[{"name": "team", "value": "db"}])
    status, said = await door.send(group())
    assert (status, said["fate"], said["reason"]) == (200, "rejected", "NoRoute")
    assert "route --dry-run" in said["message"]
    assert door.metrics.value(UNROUTED) == 1


async def test_alert_about_tarsy_itself_is_not_investigated(door: Door) -> None:
    await door.route()
    _, said = await door.send(group(fires(tarsy_self="true")))
    assert (said["fate"], said["reason"]) == ("rejected", "OwnAlert")
    assert await door.alerts() == []


async def test_alert_without_a_type_is_rejected(door: Door) -> None:
    await door.route()
    _, said = await door.send({"what": "no name"}, "json")
    assert (said["fate"], said["reason"]) == ("rejected", "NoAlertType")


async def test_alert_without_a_type_has_the_default_one_of_its_namespace(door: Door) -> None:
    await door.route()
    await door.put("InvestigationDefaults", "default", {"defaultAlertType": "Report"})
    _, said = await door.send({"what": "no name"}, "json")
    assert said["fate"] == "investigated"
    assert [alert["spec"]["alertType"] for alert in await door.alerts()] == ["Report"]


async def test_json_is_read_as_the_route_says(door: Door) -> None:
    fields = {
        "alertType": "/event/name",
        "labels": "/event/tags",
        "groupKey": "/event/id",
        "startsAt": "/event/since",
        "status": "/event/state",
    }
    await door.route(json=fields, matchers=[{"name": "team", "matchType": "=~", "value": "d.*"}])
    event = {"name": "Slow query", "tags": {"team": "db"}, "id": 7, "since": 1_767_268_800, "state": "open"}
    status, said = await door.send({"event": event}, "json")
    assert (status, said["fate"]) == (202, "investigated")
    assert (await door.alerts())[0]["spec"]["alertType"] == "Slow query"
    assert (await door.send({"event": event | {"state": "open!"}}, "json"))[1]["fate"] == "folded"
    assert (await door.send({"event": event | {"state": "OK"}}, "json"))[1]["fate"] == "resolved"


async def test_route_into_another_namespace_is_used_only_by_who_may_create_alerts_there(
    door: Door, namespace: str
) -> None:
    other = f"{namespace}-b"
    await door.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await door.route("away", namespace=other, precedence=10)
    await door.route("here")
    _, said = await door.send(group())
    assert (said["route"], said["namespace"]) == (f"{namespace}/here", namespace)


async def test_routes_of_a_tenant_are_not_asked_about_what_is_sent_to_all(door: Door) -> None:
    await door.route(precedence=1000)
    status, said = await door.send(group(), params={})
    assert (status, said["reason"]) == (200, "NoRoute")


async def test_sender_who_may_not_create_alerts_is_refused(door: Door) -> None:
    await door.route()
    stranger = await door.site.visitor(door.namespace, "stranger")
    status, said = await door.send(group(), session=stranger.session)
    assert status == 403
    assert "may not create alerts" in said["error"]["message"]
    assert await door.rows() == [("rejected", "Forbidden")]


async def test_nobody_is_refused_and_leaves_no_row(door: Door) -> None:
    await door.route()
    async with aiohttp.ClientSession() as nobody:
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic nonsense"}):
            status, _ = await door.send(group(), session=nobody, headers=headers)
            assert status == 401
    assert await door.rows() == []


async def test_password_opens_the_routes_that_name_it(door: Door) -> None:
    await door.secret("pw", "correct horse")
    ref = {"name": "pw", "key": "key"}
    auth = {"basic": {"username": "am", "passwordSecretRef": ref}, "serviceAccountName": "alerts"}
    await door.route("closed", precedence=5)
    await door.route("open", auth=auth)
    await door.allow("alerts")
    async with aiohttp.ClientSession() as nobody:
        right, wrong = basic("am", "correct horse"), basic("am", "wrong")
        assert (await door.send(group(), session=nobody, headers=wrong))[0] == 401
        nowhere: dict[str, str] = {}
        assert (await door.send(group(), session=nobody, headers=right, params=nowhere))[0] == 401
        status, said = await door.send(group(), session=nobody, headers=right)
    assert (status, said["route"]) == (202, f"{door.namespace}/open")
    (alert,) = await door.alerts()
    assert alert["spec"]["author"]["username"] == f"system:serviceaccount:{door.namespace}:alerts"


async def test_signature_opens_the_routes_that_know_its_key(door: Door) -> None:
    await door.secret("signing", "k" * 32)
    auth = {"hmac": {"secretRef": {"name": "signing", "key": "key"}}}
    await door.route("signed", auth=auth, alertType="Push")
    await door.allow("default")
    content = b'{"a": 1}'
    good = hmac.new(b"k" * 32, content, hashlib.sha256).hexdigest()
    async with aiohttp.ClientSession() as nobody:
        for signature in ("sha256=" + "0" * 64, "", good[:-1]):
            headers = {"X-Hub-Signature-256": signature}
            assert (await door.send(content, "json", session=nobody, headers=headers))[0] == 401
        assert await door.rows() == []
        headers = {"X-Hub-Signature-256": f"sha256={good}"}
        assert (await door.send(content, "json", session=nobody, headers=headers))[0] == 202


async def test_an_incident_of_pagerduty_is_signed_investigated_once_and_resolved(door: Door) -> None:
    await door.secret("signing", "k" * 32)
    auth = {"hmac": {"secretRef": {"name": "signing", "key": "key"}, "header": "X-PagerDuty-Signature"}}
    await door.route("pages", auth=auth, matchers=[{"name": "service", "value": "checkout"}])
    await door.allow("default")

    async def told(kind: str, session: aiohttp.ClientSession) -> tuple[int, dict[str, Any]]:
        incident = {"id": "Q0ABC", "created_at": "2026-05-04T01:00:00Z", "service": {"summary": "checkout"}}
        event = {"event_type": kind, "occurred_at": "2026-05-04T01:00:09Z", "data": incident}
        content = json.dumps({"event": event}).encode()
        good = hmac.new(b"k" * 32, content, hashlib.sha256).hexdigest()
        headers = {"X-PagerDuty-Signature": f"v1={'0' * 64},v1={good}"}
        return await door.send(content, "pagerduty", session=session, headers=headers)

    async with aiohttp.ClientSession() as nobody:
        kinds = ["pagey.ping", "incident.triggered", "incident.acknowledged", "incident.resolved"]
        answers = [await told(kind, nobody) for kind in kinds]
    assert [(status, said["fate"]) for status, said in answers] == [
        (200, "rejected"),
        (202, "investigated"),
        (200, "folded"),
        (200, "resolved"),
    ]
    assert answers[0][1]["reason"] == "NotAnIncident"
    (alert,) = await door.alerts()
    assert alert["spec"]["alertType"] == "PagerDutyIncident"


@pytest.mark.parametrize(("age", "status"), [(0, 202), (3600, 401)])
async def test_a_signature_with_a_time_holds_for_minutes(door: Door, age: int, status: int) -> None:
    await door.secret("signing", "k" * 32)
    ref = {"name": "signing", "key": "key"}
    await door.route("signed", auth={"hmac": {"secretRef": ref, "header": "X-Sig", "timestampHeader": "X-At"}})
    await door.allow("default")
    at, content = str(int(time.time()) - age), b'{"alertname": "Push"}'
    good = hmac.new(b"k" * 32, f"{at}:".encode() + content, hashlib.sha256).hexdigest()
    bare = hmac.new(b"k" * 32, content, hashlib.sha256).hexdigest()
    async with aiohttp.ClientSession() as nobody:
        refused = [{"X-Sig": bare, "X-At": at}, {"X-Sig": good}, {"X-Sig": good, "X-At": str(int(at) - 1)}]
        for headers in refused:
            assert (await door.send(content, "json", session=nobody, headers=headers))[0] == 401
        headers = {"X-Sig": good, "X-At": at}
        assert (await door.send(content, "json", session=nobody, headers=headers))[0] == status


@pytest.mark.parametrize("levels", [63, 64])
async def test_json_may_nest_up_to_the_limit_wherever_its_key_is(door: Door, levels: int) -> None:
    await door.route(alertType="Deep", json={"groupKey": "/a"})
    content = b'{"a": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"
    assert (await door.send(content, "json"))[0] == 202


@pytest.mark.parametrize("source", ["alertmanager", "json", "text"])
async def test_packed_body_is_refused_by_its_head(door: Door, source: str) -> None:
    await door.route()
    async with aiohttp.ClientSession() as nobody:
        bomb = gzip.compress(b"x" * 10_000_000)
        for session in (door.session, nobody):
            status, said = await door.send(bomb, source, session=session, headers={"Content-Encoding": "gzip"})
            assert (status, said["error"]["reason"]) == (415, "UnsupportedMediaType")
    assert await door.rows() == []


async def test_large_body_of_nobody_known_is_refused_by_its_head(door: Door) -> None:
    await _signed_route(door)
    reader, writer = await _slow_signed_body(door, size=LIMIT + 1)
    async with asyncio.timeout(20):
        assert b" 413 " in await reader.readline()
    writer.close()


async def test_slow_bodies_of_nobody_known_hold_no_place(door: Door) -> None:
    """More than there are places, all of the namespace of the alert that comes after them."""
    await _signed_route(door)
    hostile = [await _slow_signed_body(door) for _ in range(80)]
    async with asyncio.timeout(5):  # half of what the slow ones have
        assert (await door.send(group()))[0] == 202
        assert (await door.send(b'{"b": 2}', "json", session=door.session))[0] == 202
    for _, writer in hostile:
        writer.close()


async def test_slow_bodies_of_nobody_known_make_room_for_one_that_is_signed(door: Door) -> None:
    await _signed_route(door)
    hostile = [await _slow_signed_body(door) for _ in range(40)]
    content = b'{"a": 1}'
    good = hmac.new(b"k" * 32, content, hashlib.sha256).hexdigest()
    async with asyncio.timeout(5), aiohttp.ClientSession() as nobody:
        headers = {"X-Hub-Signature-256": good}
        assert (await door.send(content, "json", session=nobody, headers=headers))[0] == 202
    async with asyncio.timeout(20):
        assert b" 503 " in await hostile[0][0].readline()
    for _, writer in hostile:
        writer.close()


async def _signed_route(door: Door) -> None:
    await door.secret("signing", "k" * 32)
    auth = {"hmac": {"secretRef": {"name": "signing", "key": "key"}}}
    await door.route("signed", auth=auth, alertType="Push")
    await door.allow("default")


async def _slow_signed_body(door: Door, size: int = 1000) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A request with something like a signature, whose body does not come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(door.base.rpartition(":")[2]))
    head = f"POST /intake/v1/json?namespace={door.namespace} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: {'0' * 64}\r\n"
    writer.write(f"{head}Content-Length: {size}\r\n\r\nx".encode())
    await writer.drain()
    return reader, writer


async def test_secret_without_the_label_opens_nothing(door: Door) -> None:
    await door.secret("pw", "correct horse", other="true")
    await door.route(auth={"basic": {"username": "am", "passwordSecretRef": {"name": "pw", "key": "key"}}})
    await door.allow("default")
    async with aiohttp.ClientSession(headers=basic("am", "correct horse")) as nobody:
        assert (await door.send(group(), session=nobody))[0] == 401


async def test_full_queue_is_503_with_retry_after_and_leaves_no_row(door: Door) -> None:
    await door.route()
    for n in range(6):
        await door.pool.execute(
            "INSERT INTO incident (id, route, group_hash, namespace, alert, manifest, opened_at, first_start, "
            "last_start, last_received) "
            "VALUES (gen_random_uuid(), 'a/b', $1, $2, $1, '{}', now(), now(), now(), now())",
            str(n),
            door.namespace,
        )
    async with door.session.post(door.address, json=group()) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "30")
        said = (await answer.json())["error"]["message"]
    assert said == f"too many investigations are queued in namespace {door.namespace}; try again"
    assert await door.rows() == []


async def test_half_sent_body_leaves_no_row(door: Door) -> None:
    await door.route()
    _, writer = await asyncio.open_connection("127.0.0.1", int(door.base.rpartition(":")[2]))
    token = door.session.headers["Authorization"]
    head = f"POST /intake/v1/text HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Length: 1000\r\n\r\n"
    writer.write(f"{head}half".encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await door.send(group()))[0] == 202
    assert await door.rows() == [("investigated", "NewIncident")]


async def test_body_that_does_not_come_in_time_is_given_up(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.http.bodies.BODY_SECONDS", 0.2)
    never = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"half"
        await never.wait()

    async with door.session.post(f"{door.base}/intake/v1/text", data=slowly()) as answer:
        assert answer.status == 408
        assert (await answer.json())["error"]["reason"] == "RequestTimeout"
    assert await door.rows() == []


@pytest.mark.parametrize("name", ["Shop", "a/b", "-a", "a" * 64])
async def test_namespace_that_is_none_is_refused(door: Door, name: str) -> None:
    status, said = await door.send(group(), params={"namespace": name})
    assert (status, said["error"]["message"]) == (400, "query parameter namespace is not a valid name of a namespace")


async def test_alert_for_a_namespace_that_is_not_there_is_rejected(door: Door) -> None:
    await door.route(namespace="nowhere")
    everywhere = await door.site.visitor(door.namespace, "everywhere", everywhere=CREATE)
    status, _ = await door.send(group(), session=everywhere.session)
    assert status == 422
    assert await door.rows() == [("rejected", "AlertRefused")]


class Away:
    """A Kubernetes API that does not take what is created, for a time."""

    def __init__(self, kube: KubeClient, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away = True
        create = kube.create

        async def refuse(obj: dict[str, Any]) -> dict[str, Any]:
            if self.away and obj["kind"] == "Alert":
                raise ApiError(0, "Unreachable", "connection refused")
            return await create(obj)

        monkeypatch.setattr(kube, "create", refuse)


async def test_notification_is_not_lost_while_the_kubernetes_api_is_away(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.route()
    kubernetes = Away(door.kube, monkeypatch)
    async with door.session.post(door.address, json=group()) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert await door.alerts() == []
    kubernetes.away = False
    assert (await door.send(group()))[0] == 202
    assert len(await door.alerts()) == 1
    assert await door.rows() == [("investigated", "NewIncident")]


async def test_many_at_once_about_one_thing_are_one_alert(door: Door) -> None:
    await door.route()
    answers = await asyncio.gather(*(door.send(group(fires(), fires(n))) for n in range(1, 31)))
    assert sorted({status for status, _ in answers}) == [200, 202]
    assert [said["fate"] for _, said in answers].count("investigated") == 1
    assert len(await door.alerts()) == 1
