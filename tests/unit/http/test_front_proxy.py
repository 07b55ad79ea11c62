"""Tests the front proxy, and the certificates that authenticate both sides."""

import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from multidict import CIMultiDict

from tarsy.http.admission.registration import Registration
from tarsy.http.admission.tls import (
    AUTHORITIES,
    RENEWED_BEFORE,
    VALID,
    CertificateError,
    ServingCertificate,
    make_certificate,
    merge_authorities,
    needs_renewal,
    server_context,
)
from tarsy.http.aggregated import AggregatedFrontend
from tarsy.http.authentication.front_proxy import FrontProxy, NoFrontProxy, parse_front_proxy, read_front_proxy
from tarsy.http.errors import Forbidden, Unauthorized, Unavailable
from tarsy.kube.client import ApiError

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("tarsy-record.tarsy-system.svc",)
PEM = make_certificate(NAMES, datetime.now(UTC)).authority
DATA = {
    "requestheader-client-ca-file": PEM,
    "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
    "requestheader-username-headers": json.dumps(["X-Remote-User"]),
    "requestheader-uid-headers": json.dumps(["X-Remote-Uid"]),
    "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
    "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
}


def peer(name: str) -> dict[str, Any]:
    return {"subject": ((("organizationName", "o"),), (("commonName", name),))}


def front(**change: str | None) -> FrontProxy:
    data = {**DATA, **{f"requestheader-{key.replace('_', '-')}": value for key, value in change.items()}}
    return parse_front_proxy({key: value for key, value in data.items() if value is not None}, "the ConfigMap")


@pytest.mark.parametrize(
    ("allowed", "certificate", "trusted"),
    [
        ('["front-proxy-client"]', peer("front-proxy-client"), True),
        ('["front-proxy-client"]', peer("kube-apiserver"), False),
        ('["front-proxy-client"]', {}, False),
        ('["front-proxy-client"]', None, False),
        ("[]", peer("anything"), True),
        ("", peer("anything"), True),
        ("[]", None, False),
    ],
)
def test_only_a_certificate_of_an_allowed_name_is_the_front_proxy(
    allowed: str, certificate: dict[str, Any] | None, trusted: bool
) -> None:
    assert front(allowed_names=allowed).is_named(certificate) is trusted


def test_a_caller_is_who_the_headers_name() -> None:
    headers = CIMultiDict(
        [
            ("X-Remote-User", "ann"),
            ("X-Remote-Uid", "1"),
            ("X-Remote-Group", "a"),
            ("x-remote-group", "b"),
            ("X-Remote-Extra-Scopes", "read"),
            ("X-Remote-Extra-scopes", "write"),
            ("X-Remote-Extra-example.org%2Fteam", "shop"),
            ("X-Remote-Extra-", "nothing"),
            ("Authorization", "Bearer t"),
        ]
    )
    caller = front().caller(headers)
    assert (caller.username, caller.uid, caller.groups) == ("ann", "1", ("a", "b"))
    assert caller.extra == {"scopes": ("read", "write"), "example.org/team": ("shop",)}
    assert caller.token is None


def test_the_first_user_header_that_is_there_counts_and_older_servers_say_no_uid() -> None:
    known = front(username_headers='["X-Other", "X-Remote-User"]', uid_headers=None)
    caller = known.caller(CIMultiDict({"X-Remote-User": "ann", "X-Remote-Uid": "1"}))
    assert (caller.username, caller.uid) == ("ann", "")


def test_nobody_is_named_without_a_user_header() -> None:
    with pytest.raises(Unauthorized):
        front().caller(CIMultiDict({"X-Remote-Group": "system:masters"}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"client_ca_file": None}, "no requestheader-client-ca-file"),
        ({"client_ca_file": "nothing"}, "no requestheader-client-ca-file"),
        ({"username_headers": None}, "no requestheader-username-headers"),
        ({"username_headers": "[]"}, "no requestheader-username-headers"),
        ({"username_headers": "X-Remote-User"}, "requestheader-username-headers is not a JSON list"),
        ({"group_headers": '{"a": 1}'}, "requestheader-group-headers is not a JSON list"),
        ({"allowed_names": "[1]"}, "requestheader-allowed-names is not a JSON list"),
        ({"allowed_names": '[""]'}, "requestheader-allowed-names is not a JSON list"),
    ],
)
def test_what_is_missing_or_malformed_is_never_assumed(change: dict[str, str | None], said: str) -> None:
    with pytest.raises(NoFrontProxy, match=f"the ConfigMap.*{said}"):
        front(**change)


class Cluster:
    """The ConfigMap and the APIService of a cluster."""

    def __init__(self, bundle: str | None = None) -> None:
        self.config_map: dict[str, Any] | None = {"data": DATA}
        self.api_service: dict[str, Any] | None = {"kind": "APIService", "spec": {"group": "record.tarsy.dev"}}
        if bundle is not None:
            self.api_service["spec"]["caBundle"] = bundle
        self.conflicts = 0
        self.writes = 0

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        if kind == "ConfigMap":
            assert (namespace, name) == ("kube-system", "extension-apiserver-authentication")
            return self.config_map
        assert (kind, namespace, name) == ("APIService", None, "v1alpha1.record.tarsy.dev")
        return self.api_service

    async def replace(self, obj: dict[str, Any]) -> None:
        self.writes += 1
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "it has changed")
        self.api_service = obj

    def believed(self) -> list[x509.Certificate]:
        assert self.api_service is not None
        return x509.load_pem_x509_certificates(base64.b64decode(self.api_service["spec"]["caBundle"]))


async def test_a_cluster_without_an_aggregation_layer_is_told() -> None:
    cluster = Cluster()
    assert await read_front_proxy(cluster) == front()  # type: ignore[arg-type]
    cluster.config_map = None
    with pytest.raises(NoFrontProxy, match="no aggregation layer"):
        await read_front_proxy(cluster)  # type: ignore[arg-type]


def registration(cluster: Cluster, files: Path | None = None) -> Registration:
    return Registration(cluster, "tarsy-system", files)  # type: ignore[arg-type]


async def test_replicas_add_their_authorities_beside_one_another_and_write_once() -> None:
    cluster = Cluster()
    replicas = [registration(cluster) for _ in range(3)]
    for _ in range(2):
        for replica in replicas:
            await replica.publish(await replica.certificate())
    assert len(cluster.believed()) == 3
    assert cluster.writes == 3
    assert cluster.api_service is not None and cluster.api_service["spec"]["group"] == "record.tarsy.dev"


async def test_who_loses_a_race_for_the_api_service_looks_again() -> None:
    cluster, one = Cluster(), None
    cluster.conflicts = 2
    one = registration(cluster)
    await one.publish(await one.certificate())
    assert (len(cluster.believed()), cluster.writes) == (1, 3)
    cluster.conflicts = 100
    other = registration(cluster)
    with pytest.raises(ApiError, match="it keeps being changed by others"):
        await other.publish(await other.certificate())


async def test_an_authority_that_somebody_removed_is_added_again_and_garbage_goes() -> None:
    cluster = Cluster()
    one = registration(cluster)
    await one.publish(await one.certificate())
    assert cluster.api_service is not None
    for lost in (None, "", "bm90aGluZw==", "%"):
        cluster.api_service["spec"]["caBundle"] = lost
        await one.publish(await one.certificate())
        assert len(cluster.believed()) == 1


async def test_without_an_api_service_it_is_said_what_to_apply() -> None:
    cluster = Cluster()
    cluster.api_service = None
    one = registration(cluster)
    with pytest.raises(CertificateError, match=r"v1alpha1.record.tarsy.dev does not exist: apply manifests/base"):
        await one.publish(await one.certificate())


async def test_given_files_are_shown_as_they_are_now_and_believed_alone(tmp_path: Path) -> None:
    cluster = Cluster("YW55dGhpbmc=")
    one = registration(cluster, tmp_path)
    with pytest.raises(CertificateError, match=r"cannot read tls\.crt and tls\.key"):
        await one.certificate()
    for _ in range(2):
        made = make_certificate(NAMES, MOMENT)
        (tmp_path / "tls.crt").write_text(made.certificate)
        (tmp_path / "tls.key").write_text(made.key)
        (tmp_path / "ca.crt").write_text(made.authority)
        own = await one.certificate()
        assert own == made
        await one.publish(own)
        assert len(cluster.believed()) == 1
    (tmp_path / "ca.crt").unlink()
    await one.publish(await one.certificate())
    assert cluster.writes == 2


def test_a_certificate_is_renewed_before_it_is_over() -> None:
    made = make_certificate(NAMES, MOMENT)
    over = MOMENT + VALID
    assert not needs_renewal(made, over - RENEWED_BEFORE - timedelta(seconds=1))
    assert needs_renewal(made, over - RENEWED_BEFORE + timedelta(seconds=1))


def test_authorities_that_are_over_go_and_only_the_newest_are_kept() -> None:
    own = make_certificate(NAMES, MOMENT).authority
    old = make_certificate(NAMES, MOMENT - VALID - timedelta(days=1)).authority
    assert merge_authorities(own, old, MOMENT) == own
    present = own
    for day in range(AUTHORITIES + 5):
        present = merge_authorities(make_certificate(NAMES, MOMENT + timedelta(days=day)).authority, present, MOMENT)
    kept = x509.load_pem_x509_certificates(present.encode())
    assert len(kept) == AUTHORITIES
    assert own not in present
    assert own in merge_authorities(own, present, MOMENT), "whoever is alive comes back"
    assert len(x509.load_pem_x509_certificates(merge_authorities(own, present, MOMENT).encode())) == AUTHORITIES


def test_a_key_is_in_no_representation() -> None:
    assert "PRIVATE" not in repr(make_certificate(NAMES, MOMENT))


def test_certificates_that_cannot_be_used_are_told_without_what_is_in_them() -> None:
    good, other = make_certificate(NAMES, datetime.now(UTC)), make_certificate(NAMES, datetime.now(UTC))
    with pytest.raises(CertificateError, match="do not match"):
        server_context(ServingCertificate(good.certificate, other.key, ""))
    with pytest.raises(CertificateError, match="is not a certificate"):
        server_context(good, "nothing")
    context = server_context(good, PEM)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_errors_are_metav1_status_with_the_seconds_to_wait() -> None:
    door = AggregatedFrontend(front())
    status = json.loads(door.error(Forbidden("ann may not")).body)  # type: ignore[arg-type]
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "ann may not",
        "reason": "Forbidden",
        "code": 403,
    }
    answer = door.error(Unavailable("away", retry_after=7))
    assert json.loads(answer.body)["details"] == {"retryAfterSeconds": 7}  # type: ignore[arg-type]
    assert answer.headers["Retry-After"] == "7"
