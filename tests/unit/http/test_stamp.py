"""Tests admission: the author is the creating user, unless that user may name another."""

import base64
import json
from typing import Any

import pytest

from tarsy.http.admission.stamp import Request, stamped
from tarsy.kube.access import ResourceAttributes, Subject
from tarsy.kube.client import ApiError

ALICE = {"username": "alice", "uid": "a-1", "groups": ["on-call", "system:authenticated"]}


class Cluster:
    """Says yes or no to every question, or nothing at all, and notes it."""

    def __init__(self, answer: bool | None = None) -> None:
        self.answer = answer
        self.asked: list[tuple[Subject, ResourceAttributes]] = []

    async def may(self, subject: Subject, attributes: ResourceAttributes) -> bool:
        self.asked.append((subject, attributes))
        if self.answer is None:
            raise ApiError(0, "Unreachable", "away")
        return self.answer


def request(author: object = None, *, operation: str = "CREATE", user: Any = ALICE, **change: Any) -> Request:
    spec = {"alertType": "a", "data": "x"} | ({} if author is None else {"author": author})
    whole = {
        "uid": "r-1",
        "operation": operation,
        "resource": {"group": "tarsy.dev", "version": "v1alpha1", "resource": "alerts"},
        "namespace": "shop",
        "userInfo": user,
        "object": {"spec": spec},
    }
    return Request.model_validate(whole | change)


def author_in(answer: dict[str, Any]) -> Any:
    assert answer["allowed"] is True and answer["uid"] == "r-1"
    (operation,) = json.loads(base64.b64decode(answer["patch"]))
    assert (operation["op"], operation["path"], answer["patchType"]) == ("add", "/spec/author", "JSONPatch")
    return operation["value"]


async def test_who_creates_is_stamped_and_nobody_is_asked() -> None:
    cluster = Cluster()
    assert author_in(await stamped(request(), cluster.may)) == ALICE
    assert cluster.asked == []


async def test_without_a_uid_there_is_none() -> None:
    user = {"username": "bob", "groups": ["g"], "extra": {"scopes": ["user:info"]}}
    assert author_in(await stamped(request(user=user), Cluster().may)) == {"username": "bob", "groups": ["g"]}


@pytest.mark.parametrize("given", [{"username": "alice"}, {"username": "alice", "groups": ["system:masters"]}])
async def test_who_names_themselves_gets_the_groups_they_have(given: dict[str, Any]) -> None:
    assert author_in(await stamped(request(given), Cluster().may)) == ALICE


@pytest.mark.parametrize("given", [{"username": "root"}, {"username": ""}, {}, "root", {"username": ["root"]}])
async def test_who_names_another_is_refused_in_a_sentence(given: object) -> None:
    cluster = Cluster(answer=False)
    answer = await stamped(request(given), cluster.may)
    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 403, "Forbidden")
    message = answer["status"]["message"]
    assert message.startswith("spec.author: ") and "is not the creating user alice; omit it" in message
    assert "the verb attribute on alerts.tarsy.dev in namespace shop" in message
    ((subject, attributes),) = cluster.asked
    assert subject == Subject("alice", "a-1", ("on-call", "system:authenticated"))
    assert attributes == ResourceAttributes("attribute", "tarsy.dev", "alerts", namespace="shop")


async def test_who_may_attribute_names_another() -> None:
    answer = await stamped(request({"username": "root", "groups": ["g"]}), Cluster(answer=True).may)
    assert answer == {"uid": "r-1", "allowed": True}


async def test_when_nobody_can_say_there_is_no_yes() -> None:
    with pytest.raises(ApiError):
        await stamped(request({"username": "root"}), Cluster().may)


@pytest.mark.parametrize(
    "what", [{"operation": "UPDATE"}, {"operation": "DELETE", "object": None}, {"object": {}}, {"object": {"spec": 1}}]
)
async def test_what_is_no_creation_or_has_no_spec_is_left_alone(what: dict[str, Any]) -> None:
    assert await stamped(request(**what), Cluster().may) == {"uid": "r-1", "allowed": True}


@pytest.mark.parametrize(("count", "kept"), [(255, 255), (256, 256), (257, 256)])
async def test_groups_beyond_what_the_kind_takes_are_left_out(count: int, kept: int) -> None:
    groups = [f"g-{number}" for number in range(count)]
    found = author_in(await stamped(request(user=ALICE | {"groups": groups}), Cluster().may))
    assert found["groups"] == groups[:kept]


@pytest.mark.parametrize(("length", "kept"), [(511, True), (512, True), (513, False), (0, False)])
async def test_a_group_of_a_name_that_the_kind_refuses_is_left_out(length: int, kept: bool) -> None:
    user = ALICE | {"groups": ["g" * length, "on-call"]}
    found = author_in(await stamped(request(user=user), Cluster().may))
    assert found["groups"] == (["g" * length] if kept else []) + ["on-call"]


@pytest.mark.parametrize("author", [None, {"username": "alice"}, {"username": "root"}])
async def test_who_names_a_reader_needs_the_right_to_name_others(author: object) -> None:
    spec = {"alertType": "a", "data": "x", "reader": {"username": "root"}} | ({"author": author} if author else {})
    cluster = Cluster(answer=False)
    answer = await stamped(request(object={"spec": spec}), cluster.may)
    assert (answer["allowed"], answer["status"]["code"]) == (False, 403)
    assert "spec.reader: only the intake sets it; omit it" in answer["status"]["message"]
    ((subject, asked), *_) = cluster.asked
    assert (subject.username, asked.verb, asked.resource, asked.namespace) == ("alice", "attribute", "alerts", "shop")

    allowed = await stamped(request(object={"spec": spec}), Cluster(answer=True).may)
    assert allowed["allowed"] is True


@pytest.mark.parametrize("author", [None, {"username": "alice"}, {"username": "root"}])
async def test_who_marks_a_question_as_from_slack_needs_the_right_to_name_others(author: object) -> None:
    spec = {"question": "why?", "via": "Slack"} | ({"author": author} if author else {})
    cluster, about = Cluster(answer=False), {"resource": "chatmessages"}
    answer = await stamped(request(object={"spec": spec}, resource=about), cluster.may)
    assert (answer["allowed"], answer["status"]["code"]) == (False, 403)
    assert "spec.via: only the operator sets it; omit it" in answer["status"]["message"]
    ((subject, asked), *_) = cluster.asked
    assert (subject.username, asked.verb, asked.resource) == ("alice", "attribute", "chatmessages")

    allowed = await stamped(request(object={"spec": spec}, resource=about), Cluster(answer=True).may)
    assert allowed["allowed"] is True


GATED = {"policy": "WhenPassed", "suiteRef": {"name": "nightly"}}
OVERRIDE = {"revision": "b" * 16}


def push(new: Any, old: Any = None, operation: str = "UPDATE") -> Request:
    """A write of a Chain with these settings of its promotion."""
    objects = [{"spec": {} if one is None else {"promotion": one}} for one in (new, old)]
    chains = {"group": "tarsy.dev", "version": "v1alpha1", "resource": "chains"}
    old_object = None if operation == "CREATE" else objects[1]
    return request(operation=operation, resource=chains, name="pods", object=objects[0], oldObject=old_object)


@pytest.mark.parametrize(
    ("new", "old", "operation"),
    [
        (GATED | {"override": OVERRIDE}, GATED, "UPDATE"),
        (GATED | {"override": OVERRIDE}, None, "CREATE"),
        (GATED | {"override": OVERRIDE | {"author": {"username": "admin"}}}, GATED, "UPDATE"),
        (
            GATED | {"override": OVERRIDE | {"author": {"username": "admin"}}},
            GATED | {"override": OVERRIDE | {"author": ALICE}},
            "UPDATE",
        ),
        ({"policy": "Immediate"}, GATED, "UPDATE"),
        (None, GATED, "UPDATE"),
        (GATED | {"suiteRef": {"name": "easy"}}, GATED, "UPDATE"),
    ],
    ids=["override", "created with one", "forged author", "author replaced", "Immediate", "removed", "other suite"],
)
async def test_nobody_overrides_or_loosens_a_promotion_without_the_verb(new: Any, old: Any, operation: str) -> None:
    cluster = Cluster(answer=False)
    answer = await stamped(push(new, old, operation), cluster.may)
    assert answer["allowed"] is False and "alice may not promote Chain pods" in answer["status"]["message"]
    ((subject, asked),) = cluster.asked
    assert (subject.username, asked.verb, asked.resource, asked.name) == ("alice", "promote", "chains", "pods")


async def test_an_override_carries_the_user_who_set_it_whatever_it_claims() -> None:
    forged = GATED | {"override": OVERRIDE | {"author": {"username": "admin"}}}
    answer = await stamped(push(forged, GATED), Cluster(answer=True).may)
    (operation,) = json.loads(base64.b64decode(answer["patch"]))
    assert (operation["path"], operation["value"]) == ("/spec/promotion/override/author", ALICE)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (None, None),
        (GATED, None),
        (GATED, {"policy": "Immediate"}),
        (GATED, GATED),
        (GATED | {"override": OVERRIDE | {"author": ALICE}}, GATED | {"override": OVERRIDE | {"author": ALICE}}),
        (GATED, GATED | {"override": OVERRIDE}),
    ],
)
async def test_other_writes_of_a_chain_ask_nobody(new: Any, old: Any) -> None:
    cluster = Cluster()
    assert await stamped(push(new, old), cluster.may) == {"uid": "r-1", "allowed": True}
    assert cluster.asked == []
