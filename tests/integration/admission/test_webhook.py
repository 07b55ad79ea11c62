"""Tests the webhook behind a Kubernetes API: it stamps every creator, and nothing is created without a stamp."""

import asyncio
import base64
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apis import LocalApi
from integration.admission.conftest import CONFIGURED, OPERATOR, SHOP, SYSTEM, As, lead_to, serving, stamping, thing
from tarsy.http.admission.tls import VALID, make_certificate
from tarsy.http.admission.webhook import CONFIGURATION, Admission
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.objects import put

KINDS = ("Alert", "Investigation", "ChatMessage")
SIGNED_IN = "system:authenticated"


async def taken(create: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """What was created; API servers see a webhook's new certificate, or a new policy, through a watch of their own."""
    until = time.monotonic() + 60
    while True:
        try:
            return await create()
        except ApiError as error:
            if "failed calling webhook" not in error.message or time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await look():
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", KINDS)
async def test_who_creates_is_stamped(webhook: Admission, as_user: As, kind: str) -> None:
    async with as_user("alice", "on-call") as alice:
        made = await taken(lambda: alice.create(thing(kind, "crash")))
        assert made["spec"]["author"] == {"username": "alice", "groups": ["on-call", SIGNED_IN]}
        assert (await alice.get(kind, SHOP, "crash"))["spec"]["author"] == made["spec"]["author"]


async def test_the_author_of_a_schedule_is_who_creates_it(webhook: Admission, as_user: As) -> None:
    async with as_user("alice", "authors") as alice:
        made = await taken(lambda: alice.create(thing("AlertSchedule", "morning")))
        assert made["spec"]["author"] == {"username": "alice", "groups": ["authors", SIGNED_IN]}
        with pytest.raises(ApiError, match="bob is not the creating user alice"):
            await alice.create(thing("AlertSchedule", "forged", author={"username": "bob"}))


async def test_a_forged_author_is_refused_in_a_sentence_and_nothing_is_created(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    async with as_user("alice", "on-call") as alice:
        await taken(lambda: alice.create(thing("Alert", "mine")))
        with pytest.raises(ApiError) as refused:
            await alice.create(thing("Alert", "forged", author={"username": "bob", "groups": ["on-call"]}))
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    assert "spec.author: bob is not the creating user alice; omit it" in refused.value.message
    assert await admin.find("Alert", SHOP, "forged") is None


async def test_who_names_themselves_gets_no_group_that_they_have_not(webhook: Admission, as_user: As) -> None:
    author = {"username": "alice", "groups": ["system:masters"]}
    async with as_user("alice", "on-call") as alice:
        made = await taken(lambda: alice.create(thing("Investigation", "crash", author=author)))
    assert made["spec"]["author"]["groups"] == ["on-call", SIGNED_IN]


async def test_the_operator_names_the_author_of_an_alert_and_an_administrator_anybody(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    author = {"username": "alice", "uid": "a-1", "groups": ["on-call"]}
    async with as_user(OPERATOR) as operator:
        made = await taken(lambda: operator.create(thing("Investigation", "crash", author=author)))
        assert made["spec"]["author"] == author
        with pytest.raises(ApiError, match="cannot create resource"):
            await operator.create(thing("ChatMessage", "crash", author=author))
    restored = await admin.create(thing("ChatMessage", "restored", author=author))
    assert restored["spec"]["author"] == author
    own = await admin.create(thing("ChatMessage", "own"))
    assert own["spec"]["author"]["username"] == "kubernetes-admin"


async def test_while_nobody_serves_it_nothing_is_created_and_other_objects_are(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    async with as_user("alice", "on-call") as alice:
        await taken(lambda: alice.create(thing("Alert", "before")))
        await lead_to(admin, 9)

        async def refused() -> bool:
            try:
                await alice.create(thing("Alert", f"after-{time.monotonic_ns()}"))
            except ApiError as error:
                assert "author.tarsy.dev" in error.message
                return True
            return False

        await eventually(refused)
        # What is there goes on: it can be cancelled, and its status written.
        await alice.patch("Alert", SHOP, "before", {"spec": {"ttlSecondsAfterFinished": 60}})
        await admin.patch("Alert", SHOP, "before", {"status": {"phase": "Waiting"}}, subresource="status")
        await alice.delete("Alert", SHOP, "before")


async def test_each_replica_is_believed_and_nothing_else_of_the_configuration_is_written(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    before = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
    async with as_user(OPERATOR) as operator, serving(operator) as second:
        both = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
        assert len(both["webhooks"]) == 3
        for hook in both["webhooks"]:
            assert base64.b64decode(hook["clientConfig"].pop("caBundle")).count(b"BEGIN CERTIFICATE") == 2
        for hook in before["webhooks"]:
            hook["clientConfig"].pop("caBundle")
        assert before["webhooks"] == both["webhooks"]
        await lead_to(admin, second.port)
        async with as_user("alice", "on-call") as alice:
            made = await taken(lambda: alice.create(thing("Alert", "crash")))
    assert made["spec"]["author"]["username"] == "alice"


async def test_a_bundle_that_somebody_took_away_is_written_again(admin: KubeClient, webhook: Admission) -> None:
    async with serving(admin, look_seconds=0.2):
        found = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
        found["webhooks"][0]["clientConfig"].pop("caBundle")
        await admin.replace(found)

        async def there() -> bool:
            found = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
            return "caBundle" in found["webhooks"][0]["clientConfig"]

        await eventually(there)


async def test_an_installation_that_comes_later_is_served_and_one_that_goes_is_not(
    admin: KubeClient, as_user: As
) -> None:
    async with serving(admin, look_seconds=0.2) as admission:
        assert admission.port == 0
        await put(admin, CONFIGURED)
        await eventually(lambda: answers(admission.port))
        await lead_to(admin, admission.port)
        await stamping(admin)
        async with as_user("alice", "on-call") as alice:
            made = await taken(lambda: alice.create(thing("Alert", "crash")))
            assert made["spec"]["author"]["username"] == "alice"
        await admin.delete("MutatingWebhookConfiguration", None, CONFIGURATION)
        await eventually(lambda: silent(admission.port))


async def silent(port: int) -> bool:
    return not await answers(port)


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_certificate_that_is_over_soon_is_replaced_at_the_same_port(
    admin: KubeClient, as_user: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(admin, CONFIGURED)
    async with serving(admin, look_seconds=0.2) as admission, as_user("alice", "on-call") as alice:
        port = admission.port
        await lead_to(admin, port)
        await stamping(admin)
        await taken(lambda: alice.create(thing("Alert", "before")))

        async def renewed() -> bool:
            found = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
            bundle = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
            return bundle.count(b"BEGIN CERTIFICATE") > 1

        with monkeypatch.context() as patch:
            patch.setattr("tarsy.http.admission.tls.RENEWED_BEFORE", VALID * 2)
            await eventually(renewed)
        await taken(lambda: alice.create(thing("Alert", "after")))
        assert admission.port == port


def write_certificate(folder: Path) -> str:
    """Writes a certificate as OLM mounts it, and returns its CA in PEM."""
    made = make_certificate((f"tarsy-admission.{SYSTEM}.svc",), datetime.now(UTC))
    (folder / "tls.crt").write_text(made.certificate)
    (folder / "tls.key").write_text(made.key)
    return made.authority


async def test_with_a_certificate_from_outside_the_registration_is_left_alone(
    admin: KubeClient, as_user: As, tmp_path: Path
) -> None:
    """OLM makes the registration under a name of its own, with its CA."""
    first = write_certificate(tmp_path)
    async with as_user(OPERATOR) as operator, serving(operator, files=tmp_path, look_seconds=0.2) as admission:
        port = admission.port
        other = await put(admin, CONFIGURED | {"metadata": {"name": CONFIGURATION}})
        for hook in other["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(first.encode()).decode()
        await admin.replace(other)
        await lead_to(admin, port)
        await stamping(admin)
        (tmp_path / "tls.key").write_text("half of a key")
        async with as_user("alice", "on-call") as alice:
            made = await taken(lambda: alice.create(thing("Alert", "while-it-rotates")))
            assert made["spec"]["author"]["username"] == "alice"
            second = write_certificate(tmp_path)
            await eventually(lambda: presents(port, second))
            found = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
            bundles = {hook["clientConfig"]["caBundle"] for hook in found["webhooks"]}
            assert bundles == {base64.b64encode(first.encode()).decode()}


async def presents(port: int, authority: str) -> bool:
    """Whether the webhook shows a certificate of this CA."""
    trust = ssl.create_default_context(cadata=authority)
    try:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trust, server_hostname=f"tarsy-admission.{SYSTEM}.svc"
        )
    except OSError:
        return False
    writer.close()
    return True


class CannotAsk(KubeClient):
    """A client whose reviews nobody answers."""

    async def create(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        raise ApiError(0, "Unreachable", "away")


async def test_when_nobody_can_say_who_may_name_another_nothing_is_created(
    server: LocalApi, admin: KubeClient, as_user: As
) -> None:
    await put(admin, CONFIGURED)
    async with await CannotAsk.load(server.kubeconfig) as operator, serving(operator) as admission:
        await lead_to(admin, admission.port)
        await stamping(admin)
        async with as_user("alice", "on-call") as alice:
            await taken(lambda: alice.create(thing("Alert", "own")))
            with pytest.raises(ApiError, match=r"author\.tarsy\.dev"):
                await alice.create(thing("Alert", "forged", author={"username": "bob"}))
    assert await admin.find("Alert", SHOP, "forged") is None


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [
        ("POST", b"no JSON", 400),
        ("POST", b"\xff\xfe", 400),
        ("POST", b'{"request": {"uid": 1}}', 400),
        ("POST", b"x" * (4 * 1_048_576 + 1), 413),
        ("GET", b"", 405),
    ],
)
async def test_what_is_no_review_is_refused(webhook: Admission, method: str, body: bytes, status: int) -> None:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{webhook.port}/stamp"
    async with aiohttp.ClientSession() as session, session.request(method, url, data=body, ssl=tls) as answer:
        assert answer.status == status
        assert "Traceback" not in await answer.text()
