"""Tests what the Kubernetes API is asked about an author, and what its answers mean."""

from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.runs.authorization import authorization_refusal
from tarsy.kube.client import ApiError
from tarsy.resources.v1alpha1.common import Author

ALICE = Author(username="alice", uid="a-1", groups=("on-call",))
CHAIN, SERVER = Key("Chain", "library", "one"), Key("MCPServer", "shop", "kube")


class Cluster:
    """Allows what it is told to, and notes what it is asked."""

    def __init__(self, *allowed: str, away: bool = False, doubt: str = "") -> None:
        self.allowed = allowed
        self.away = away
        self.doubt = doubt
        self.asked: list[dict[str, Any]] = []

    async def create(self, review: dict[str, Any]) -> dict[str, Any]:
        if self.away:
            raise ApiError(0, "Unreachable", "away")
        self.asked.append(review["spec"])
        allowed = review["spec"]["resourceAttributes"]["name"] in self.allowed
        return {"status": {"allowed": allowed} | ({"evaluationError": self.doubt} if self.doubt else {})}


async def ask(cluster: Cluster, author: Author | None, *used: Key, required: bool = True) -> tuple[str, str] | None:
    return await authorization_refusal(author, used, cluster, required=required)  # type: ignore[arg-type]


async def test_each_object_is_asked_about_where_it_is_by_name_for_the_author_with_uid_and_groups() -> None:
    cluster = Cluster("one", "kube")
    assert await ask(cluster, ALICE, CHAIN, SERVER) is None
    assert [spec["resourceAttributes"] for spec in cluster.asked] == [
        {"verb": "use", "group": "tarsy.dev", "resource": "chains", "namespace": "library", "name": "one"},
        {"verb": "use", "group": "tarsy.dev", "resource": "mcpservers", "namespace": "shop", "name": "kube"},
    ]
    for spec in cluster.asked:
        assert (spec["user"], spec["uid"], spec["groups"]) == ("alice", "a-1", ["on-call"])


async def test_a_refusal_names_every_object_the_verb_and_the_remedy() -> None:
    refused = await ask(Cluster(), ALICE, CHAIN, SERVER)
    assert refused is not None and refused[0] == "Forbidden"
    assert refused[1].split("; ") == [
        "spec.author: alice may not use Chain library/one",
        "in namespace library grant them a role with the verb use on chains.tarsy.dev one, such as tarsy-investigator",
        "spec.author: alice may not use MCPServer shop/kube",
        "in namespace shop grant them a role with the verb use on mcpservers.tarsy.dev kube, such as "
        "tarsy-investigator",
    ]


async def test_nobody_who_may_say_is_no_yes() -> None:
    with pytest.raises(ApiError):
        await ask(Cluster(away=True), ALICE, CHAIN)


async def test_what_the_authorizers_stumbled_over_is_told_and_is_no_yes_nor_a_no_to_what_is_allowed() -> None:
    cluster = Cluster("one", doubt='clusterrole "gone" not found')
    refused = await ask(cluster, ALICE, CHAIN, SERVER)
    assert refused is not None and refused[0] == "Forbidden"
    assert "Chain" not in refused[1]
    assert 'may not use MCPServer shop/kube (the Kubernetes API could not decide: clusterrole "gone" not' in refused[1]


async def test_without_an_author_nobody_is_asked_and_only_what_requires_one_is_refused() -> None:
    cluster = Cluster()
    assert await ask(cluster, None, CHAIN, required=False) is None
    refused = await ask(cluster, None, CHAIN)
    assert refused is not None and refused[0] == "AuthorUnknown"
    assert cluster.asked == []
