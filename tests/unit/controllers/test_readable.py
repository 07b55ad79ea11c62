"""Whose rights limit what a stage of kind Changes reads, and what the Kubernetes API is asked about them."""

from typing import Any

import pytest

from tarsy.controllers.runs.readable import limited_to_reader, reader_of
from tarsy.evidence.reading import KINDS
from tarsy.kube.client import ApiError
from tarsy.plan.model import ChangesPlan, Plan, StagePlan
from tarsy.resources.v1alpha1.alert import AlertContent, AlertSpec
from tarsy.resources.v1alpha1.common import Author
from unit.engine.build import plan

ALICE = Author(username="alice", uid="a-1", groups=("on-call",))
BOB, READER = Author(username="bob"), Author(username="system:serviceaccount:routes:reader")
INTAKE = AlertSpec(alert_type="x", data="y", author=ALICE, reader=READER)


class Cluster:
    """Allows these resources, but not to get those of `not_got`, and notes what it is asked."""

    def __init__(self, *allowed: str, doubtful: str = "", away: str = "", not_got: tuple[str, ...] = ()) -> None:
        self.not_got = not_got
        self.allowed, self.doubtful, self.away = allowed, doubtful, away
        self.asked: list[dict[str, Any]] = []

    async def create(self, review: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(review["spec"])
        resource = review["spec"]["resourceAttributes"]["resource"]
        if resource == self.away:
            raise ApiError(0, "Unreachable", "away")
        doubt = {"evaluationError": "no such role"} if resource == self.doubtful else {}
        refused = review["spec"]["resourceAttributes"]["verb"] == "get" and resource in self.not_got
        return {"status": {"allowed": resource in self.allowed and not refused, **doubt}}


def reading(account: str | None = "reader") -> Plan:
    return plan(StagePlan(name="before", changes=ChangesPlan(account=account)))


async def asked(cluster: Cluster, of: Plan | None = None, reader: Author | None = ALICE) -> ChangesPlan:
    limited = await limited_to_reader(of or reading(), reader, cluster)  # type: ignore[arg-type]
    assert limited.stages[0].changes is not None
    return limited.stages[0].changes


async def test_each_kind_is_asked_about_as_the_reader_in_the_namespace_of_the_run() -> None:
    cluster = Cluster("pods", "nodes", "deployments")
    found = await asked(cluster)
    assert (found.reader, found.readable) == ("alice", ("Pod", "Deployment", "Node"))
    assert len(cluster.asked) == len(KINDS)
    assert {(spec["user"], spec["uid"], tuple(spec["groups"])) for spec in cluster.asked} == {
        ("alice", "a-1", ("on-call",))
    }
    about = {spec["resourceAttributes"]["resource"]: spec["resourceAttributes"] for spec in cluster.asked}
    assert about["pods"] == {"verb": "list", "resource": "pods", "namespace": "team-a"}
    assert about["deployments"] == {"verb": "list", "group": "apps", "resource": "deployments", "namespace": "team-a"}
    assert about["nodes"] == {"verb": "list", "resource": "nodes"}, "cluster-wide"
    assert "secrets" not in about


async def test_the_history_of_a_kind_needs_the_right_to_get_it() -> None:
    cluster = Cluster("pods", "deployments", "nodes", "events", not_got=("deployments",))
    limited = await limited_to_reader(reading(), ALICE, cluster, history=True)  # type: ignore[arg-type]
    changes = limited.stages[0].changes
    assert changes is not None
    assert (changes.readable, changes.recorded) == (("Pod", "Event", "Deployment", "Node"), ("Pod",))
    got = {s["resourceAttributes"]["resource"] for s in cluster.asked if s["resourceAttributes"]["verb"] == "get"}
    assert got == {"pods", "deployments"}, "kinds that may be listed and are recorded"


async def test_without_a_history_nobody_is_asked_what_may_be_got() -> None:
    cluster = Cluster("pods")
    assert (await asked(cluster)).recorded == ()
    assert {spec["resourceAttributes"]["verb"] for spec in cluster.asked} == {"list"}


async def test_a_reader_without_rights_reads_nothing() -> None:
    assert (await asked(Cluster())).readable == ()


async def test_what_cannot_be_decided_is_not_read() -> None:
    assert (await asked(Cluster("pods", doubtful="services"))).readable == ("Pod",)


async def test_nobody_who_may_say_is_no_yes() -> None:
    with pytest.raises(ApiError):
        await asked(Cluster("pods", away="services"))


@pytest.mark.parametrize(("of", "reader"), [(reading(None), ALICE), (reading(), None)])
async def test_nobody_is_asked_where_nothing_is_read_or_no_author_is_known(of: Plan, reader: Author | None) -> None:
    cluster = Cluster()
    assert (await asked(cluster, of, reader)).readable is None
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("author", "alert", "named_by", "expected"),
    [
        (ALICE, INTAKE, ALICE, READER),
        (BOB, INTAKE, ALICE, BOB),
        (ALICE.model_copy(update={"uid": "other"}), INTAKE, ALICE, ALICE.model_copy(update={"uid": "other"})),
        (ALICE, INTAKE.model_copy(update={"reader": None}), ALICE, ALICE),
        (ALICE, AlertContent(alert_type="x", data="y"), ALICE, ALICE),
        (None, INTAKE.model_copy(update={"author": None}), None, READER),
        (None, AlertContent(alert_type="x", data="y"), None, None),
    ],
)
def test_the_reader_of_an_alert_counts_only_for_runs_of_its_own_author(
    author: Author | None, alert: AlertContent, named_by: Author | None, expected: Author | None
) -> None:
    assert reader_of(author, alert, named_by) == expected
