"""With which rights objects are read, and what is said where rights are missing."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tarsy.engine.ports import NotRead
from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.reading import KINDS
from tarsy.evidence.snapshot import Gap, Snapshot
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.model import ChangesPlan
from tarsy.record.reading.object_history import ObjectIdentity, ObjectVersion, Unwatched, VersionAction
from tarsy.runtime.object_reader import ClusterObjects

RUN = UUID("11111111-2222-4333-8444-555555555555")
REQUIRED = {kind.kind for kind in KINDS if not kind.optional}


class Issuer(KubeClient):
    """Gives a token that names its account, or refuses; reads nothing."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        self.refusal = refusal

    async def request_token(self, namespace: str, service_account: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        if self.refusal is not None:
            raise self.refusal
        return {"spec": {"expirationSeconds": 600}, "status": {"token": f"{namespace}/{service_account}"}}


class Nobody(KubeClient):
    """The API without an identity: lists one object of each kind to who bears a token."""

    def __init__(self, *forbidden: str, status: int = 403) -> None:
        self.forbidden, self.status = forbidden, status
        self.bearer = ""
        self.asked: list[tuple[str, str, str]] = []

    def bearing(self, token: str) -> KubeClient:
        self.bearer = token
        return self

    async def request(self, method: str, target: str, **more: Any) -> dict[str, Any]:
        plural = target.rpartition("/")[2]
        self.asked.append((self.bearer, target, more["accept"]))
        if plural in self.forbidden:
            raise ApiError(self.status, "Forbidden", "no")
        return {"items": [{"metadata": {"name": plural, "namespace": "shop"}}], "metadata": {}}


def plan(*readable: str, limited: bool = True) -> ChangesPlan:
    return ChangesPlan(account="reader", reader="alice", readable=readable if limited else None)


async def read(of: ChangesPlan, nobody: Nobody, issuer: Issuer | None = None) -> Snapshot | NotRead:
    objects = ClusterObjects(issuer or Issuer(), nobody, str)
    return await objects.of_run(RUN, "shop").read(of)


async def test_only_kinds_of_the_reader_are_asked_for_and_only_as_the_account() -> None:
    nobody = Nobody()
    found = await read(plan("Pod", "ConfigMap"), nobody)
    assert isinstance(found, Snapshot)
    assert {(bearer, target) for bearer, target, _ in nobody.asked} == {
        ("shop/reader", "/api/v1/namespaces/shop/pods"),
        ("shop/reader", "/api/v1/namespaces/shop/configmaps"),
    }
    accepted = {target: accept for _, target, accept in nobody.asked}
    assert "PartialObjectMetadataList" in accepted["/api/v1/namespaces/shop/configmaps"]
    assert {gap.kind for gap in found.gaps} == REQUIRED - {"Pod", "ConfigMap"}
    assert {gap.reason for gap in found.gaps} == {"may not be listed"}
    assert not found.complete("Service", "shop")


async def test_what_the_account_may_not_list_is_a_gap_like_what_the_reader_may_not() -> None:
    found = await read(plan("Pod", "Service"), Nobody("services"))
    assert isinstance(found, Snapshot)
    assert Gap("Service", "shop", "may not be listed") in found.gaps
    assert list(found.keys("Service")) == []


async def test_a_reader_without_rights_costs_no_request() -> None:
    nobody = Nobody()
    found = await read(plan(), nobody)
    assert isinstance(found, Snapshot) and list(found.all_keys()) == [] and nobody.asked == []
    assert {gap.kind for gap in found.gaps} == REQUIRED


async def test_without_a_known_author_the_account_alone_decides() -> None:
    nobody = Nobody()
    assert isinstance(await read(plan(limited=False), nobody), Snapshot)
    assert len(nobody.asked) == len(KINDS)


async def test_a_token_that_is_refused_is_told_and_nothing_is_read_with_other_rights() -> None:
    nobody = Nobody()
    found = await read(plan("Pod"), nobody, Issuer(ApiError(403, "Forbidden", "no")))
    assert isinstance(found, NotRead) and found.refused
    assert "component `tenant-agents`" in found.sentence and "shop/reader" in found.sentence
    assert nobody.asked == []
    assert isinstance(await read(ChangesPlan(), nobody), NotRead)


@pytest.mark.parametrize("status", [0, 401])
async def test_an_api_that_does_not_answer_is_no_missing_right(status: int) -> None:
    found = await read(plan("Pod"), Nobody("pods", status=status))
    assert isinstance(found, NotRead) and not found.refused


def test_a_text_that_cannot_be_searched_for_secrets_is_withheld() -> None:
    def fails(text: str) -> str:
        raise ValueError

    objects = ClusterObjects(Issuer(), Nobody(), fails).of_run(RUN, "shop")
    assert objects.without_secrets("password=hunter2") == "[withheld: it could not be searched for secrets]"


class Histories:
    """A namespace with a history (or none), which notes the kinds that it is asked for."""

    def __init__(self, uid: str | None = "ns-1") -> None:
        self.uid = uid
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def namespace_of_run(self, run: UUID) -> str | None:
        assert run == RUN
        return self.uid

    async def changes(self, uid: str, kinds: list[str], since: datetime, until: datetime) -> list[ObjectVersion]:
        self.asked.append((uid, tuple(kinds)))
        identity = ObjectIdentity(uid, "shop", "ConfigMap", "checkout", "cm-1")
        action, fields = VersionAction.CHANGED, ("data.x",)
        return [ObjectVersion(identity, 2, action, "Config", since, None, since, 1, "kubectl", fields, ())]

    async def unwatched(self, uid: str, kinds: list[str], since: datetime, until: datetime) -> list[Unwatched]:
        return [Unwatched("Pod", since, until, "TARSy did not run")]


class Judged(Nobody):
    """Answers what the account may get."""

    def __init__(self, *got: str) -> None:
        super().__init__()
        self.got = got

    async def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        assert obj["kind"] == "SelfSubjectAccessReview" and self.bearer == "shop/reader"
        about = obj["spec"]["resourceAttributes"]
        assert about["verb"] == "get" and about["namespace"] == "shop"
        return {"status": {"allowed": about["resource"] in self.got}}


async def history(
    of: ChangesPlan, nobody: Nobody, histories: Histories, issuer: Issuer | None = None
) -> RecordedHistory:
    objects = ClusterObjects(issuer or Issuer(), nobody, str, history=histories)  # type: ignore[arg-type]
    return await objects.of_run(RUN, "shop").history(of, datetime(2026, 11, 1, tzinfo=UTC))


async def test_history_is_read_of_kinds_that_account_and_reader_both_may_get() -> None:
    histories = Histories()
    limited = plan("Pod", "ConfigMap").model_copy(update={"recorded": ("ConfigMap", "Pod")})
    found = await history(limited, Judged("configmaps", "deployments"), histories)
    assert histories.asked == [("ns-1", ("ConfigMap",))]
    assert [(str(one.object), one.manager) for one in found.changes] == [("ConfigMap shop/checkout", "kubectl")]
    assert "TARSy did not run" in found.gaps[0].reason


async def test_without_a_known_author_the_account_alone_decides_about_history() -> None:
    histories = Histories()
    await history(plan(limited=False), Judged("configmaps", "deployments"), histories)
    assert histories.asked == [("ns-1", ("ConfigMap", "Deployment"))]


async def test_a_namespace_without_history_costs_no_request() -> None:
    histories, nobody = Histories(None), Judged("configmaps")
    assert await history(plan(limited=False), nobody, histories) == RecordedHistory()
    assert histories.asked == [] and nobody.bearer == ""


async def test_history_that_may_not_be_judged_is_a_gap_and_is_not_read() -> None:
    histories = Histories()
    found = await history(plan(limited=False), Judged(), histories, Issuer(ApiError(403, "Forbidden", "no")))
    assert histories.asked == [] and list(found.changes) == []
    assert [gap.reason for gap in found.gaps] == ["it is not known whether it may be read"]
