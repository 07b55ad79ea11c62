"""Tests the shipped policies on a capable API server: authors without the webhook, and `use` of a chain at creation."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import rights
from integration.admission.conftest import OPERATOR, SHOP, As, put_policies, thing
from integration.admission.test_webhook import taken
from tarsy.http.admission.webhook import Admission
from tarsy.kube.client import ApiError, KubeClient

pytestmark = pytest.mark.newer_api

ALICE = {"username": "alice", "groups": ["on-call"]}
KINDS = ("Alert", "Investigation", "ChatMessage")


@pytest.fixture(autouse=True)
async def _policies(admin: KubeClient) -> None:
    await put_policies(admin)


async def refusal(create: Callable[[str], Awaitable[dict[str, Any]]]) -> str:
    """Why nothing can be created, once the API server has seen the policies."""
    until = time.monotonic() + 60
    while True:
        try:
            await create(f"x-{time.monotonic_ns()}")
        except ApiError as error:
            assert error.reason == "Forbidden" and error.status == 403
            return error.message
        assert time.monotonic() < until
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", KINDS)
async def test_without_the_webhook_nothing_gets_in_without_an_author(as_user: As, kind: str) -> None:
    async with as_user("alice", "on-call") as alice:
        message = await refusal(lambda name: alice.create(thing(kind, name)))
    assert "spec.author: is missing; the admission webhook sets it" in message and "tarsy-admission" in message


@pytest.mark.parametrize(
    "forged",
    [
        {"username": "bob", "groups": ["on-call"]},
        {"username": "alice", "groups": ["on-call", "system:masters"]},
        {"username": "alice", "uid": "another"},
    ],
)
@pytest.mark.parametrize("kind", KINDS)
async def test_without_the_webhook_nobody_gets_in_under_anothers_name_uid_or_group(
    as_user: As, kind: str, forged: dict[str, Any]
) -> None:
    async with as_user("alice", "on-call") as alice:
        message = await refusal(lambda name: alice.create(thing(kind, name, author=forged)))
    assert f"spec.author: {forged['username']} with these groups is not the creating user alice" in message


@pytest.mark.parametrize("groups", [["on-call", "system:authenticated"], ["on-call"], []])
async def test_who_stamps_themselves_truly_gets_in_without_the_webhook(as_user: As, groups: list[str]) -> None:
    async with as_user("alice", "on-call") as alice:
        await refusal(lambda name: alice.create(thing("Alert", name)))
        made = await alice.create(thing("Alert", "mine", author={"username": "alice", "groups": groups}))
    assert made["spec"]["author"]["groups"] == groups


async def test_operator_and_administrator_get_in_under_anothers_name(admin: KubeClient, as_user: As) -> None:
    async with as_user(OPERATOR) as operator:
        await refusal(lambda name: operator.create(thing("Investigation", name)))
        made = await operator.create(thing("Investigation", "crash", author=ALICE))
    assert made["spec"]["author"] == ALICE
    await admin.create(thing("ChatMessage", "restored", author=ALICE))


async def test_only_who_may_name_others_marks_a_question_as_from_slack(admin: KubeClient, as_user: As) -> None:
    async with as_user("alice", "on-call") as alice:
        message = await refusal(lambda name: alice.create(thing("ChatMessage", name, author=ALICE, via="Slack")))
    assert "spec.via: only the operator sets it; omit it" in message
    made = await admin.create(thing("ChatMessage", "asked", author=ALICE, via="Slack"))
    assert (made["spec"]["via"], made["spec"]["author"]) == ("Slack", ALICE)


async def test_with_the_webhook_what_it_stamps_is_what_the_policies_want(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    async with as_user("alice", "on-call") as alice:
        for kind in KINDS:
            made = await taken(lambda kind=kind: alice.create(thing(kind, "crash")))
            assert made["spec"]["author"]["username"] == "alice"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [{"username": "bob"}, {"username": "alice", "groups": ["system:masters"]}, None])
async def test_an_author_does_not_change(admin: KubeClient, kind: str, change: dict[str, Any] | None) -> None:
    """Nor for an administrator: a rule of the kinds, which holds without any admission."""
    await admin.create(thing(kind, "crash", author=ALICE))
    with pytest.raises(ApiError, match="author cannot be changed; create a new"):
        await admin.patch(kind, SHOP, "crash", {"spec": {"author": change}})


def named(chain: str, where: str) -> dict[str, Any]:
    reference = {"chainRef": {"name": chain}}
    return reference if where == "spec" else {"alert": {"alertType": "a", "data": "x"} | reference}


@pytest.mark.parametrize("where", ["spec", "spec.alert"])
async def test_an_investigation_of_a_chain_that_is_not_its_creators_to_use_is_refused_at_once(
    webhook: Admission, admin: KubeClient, as_user: As, where: str
) -> None:
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["investigations"], "verbs": ["create"]}
    one = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "resourceNames": ["mine"], "verbs": ["use"]}
    allowed = rights.binding("only-create", SHOP, "Role", "only-create", rights.group("creators"))
    await rights.put_rights(admin, (rights.role("only-create", SHOP, rule, one), allowed))
    async with as_user("carol", "creators") as carol:
        spec = named("others", where)
        message = await refusal(lambda name: taken(lambda: carol.create(thing("Investigation", name, **spec))))
        assert f"{where}.chainRef.name: carol may not use Chain others of namespace shop or tarsy-library" in message
        assert "a role with the verb use on chains.tarsy.dev others, such as tarsy-investigator" in message
        await taken(lambda: carol.create(thing("Investigation", "mine", **named("mine", where))))
        await taken(lambda: carol.create(thing("Investigation", "shipped", **named("kubernetes", where))))


@pytest.mark.parametrize("kind", KINDS)
async def test_an_object_without_a_spec_is_refused_by_its_schema(admin: KubeClient, as_user: As, kind: str) -> None:
    async with as_user("alice", "on-call") as alice:
        await refusal(lambda name: alice.create(thing(kind, name)))
        bare = thing(kind, "bare")
        del bare["spec"]
        with pytest.raises(ApiError, match="spec: Required value") as refused:
            await alice.create(bare)
    assert refused.value.status == 422 and "no such key" not in refused.value.message


async def test_an_investigator_runs_chains_of_the_namespace_and_of_the_library(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    async with as_user("alice", "on-call") as alice, as_user("eve", "only-in-the-library") as eve:
        await taken(lambda: alice.create(thing("Investigation", "own", **named("any", "spec"))))
        await taken(lambda: alice.create(thing("Investigation", "by-type")))
        with pytest.raises(ApiError, match="cannot create resource"):
            await eve.create(thing("Investigation", "none", **named("any", "spec")))


async def test_a_run_in_anothers_name_is_asked_about_at_acceptance_only(admin: KubeClient, as_user: As) -> None:
    async with as_user(OPERATOR) as operator:
        await refusal(lambda name: operator.create(thing("Investigation", name)))
        await operator.create(thing("Investigation", "crash", author=ALICE, **named("any", "spec")))
