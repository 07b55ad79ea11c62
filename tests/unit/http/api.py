"""Provides a Kubernetes API with scripted reviews and namespaces, which counts its requests."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from tarsy.http.application import build_application
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.frontends import ApiFrontend, BearerFrontend
from tarsy.http.evidence.limits import EvidenceSlots
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.route import Route
from tarsy.http.services import Services
from tarsy.kube.client import ApiError
from tarsy.observe.metrics import Metrics

AWAY = ApiError(0, "Unreachable", "the Kubernetes API could not be reached: connection refused by 10.0.0.1")


class FakeKube:
    """What the doors and `Access` ask of a KubeClient.

    Args:
        tokens: whose each token is, as the user of a TokenReview's status.
        allowed: whether a SubjectAccessReview's spec is allowed.
    """

    def __init__(
        self, tokens: Mapping[str, Mapping[str, Any]], allowed: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> None:
        self.tokens = tokens
        self.allowed = allowed
        self.away = False
        self.asked: Counter[str] = Counter()
        self.reviews: list[dict[str, Any]] = []
        self.lent: list[str] = []
        self.audiences: tuple[str, ...] = ()

    async def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        self._answers(obj["kind"])
        self.reviews.append(obj)
        if obj["kind"] == "SubjectAccessReview":
            return {"status": {"allowed": self.allowed(obj["spec"])}}
        user = self.tokens.get(obj["spec"]["token"])
        if user is None:
            return {"status": {"user": {}, "error": "invalid bearer token"}}
        return {"status": {"authenticated": True, "user": user, "audiences": list(self.audiences)}}

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        self._answers(kind)
        return None if name == "gone" else {"metadata": {"name": name, "uid": f"uid-of-{name}"}}

    def bearing(self, token: str) -> "FakeKube":
        self.lent.append(token)
        return self

    def _answers(self, kind: str) -> None:
        self.asked[kind] += 1
        if self.away:
            raise AWAY


def services(kube: FakeKube, *, seconds: float = 10.0, evidence: EvidenceSlots | None = None) -> Services:
    """Services on it, without a record."""
    return Services(
        pool=None,  # type: ignore[arg-type]
        reads=None,  # type: ignore[arg-type]
        kube=kube,  # type: ignore[arg-type]
        callers=kube,  # type: ignore[arg-type]
        access=AccessReviews(kube, seconds=seconds),  # type: ignore[arg-type]
        namespaces=NamespaceReader(kube, seconds=seconds),  # type: ignore[arg-type]
        evidence=evidence or EvidenceSlots(),
    )


def client(
    kube: FakeKube,
    *routes: Route,
    door: ApiFrontend | None = None,
    metrics: Metrics | None = None,
    seconds: float = 30.0,
    evidence: EvidenceSlots | None = None,
) -> TestClient[Any, Any]:
    """A client of the routes; enter it."""
    at = door or BearerFrontend(kube)  # type: ignore[arg-type]
    return TestClient(
        TestServer(build_application(routes, at, services(kube, evidence=evidence), metrics, seconds=seconds))
    )
