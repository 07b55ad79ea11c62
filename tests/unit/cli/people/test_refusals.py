"""What the API said no with, and what to do about it."""

import pytest

from tarsy.client.errors import BrokenOff
from tarsy.client.refusals import READ_TRACE, WRITE, namespace_of, refusal_error
from tarsy.kube.client import ApiError

BY_RBAC = 'investigations.record.tarsy.dev "run" is forbidden: User "ada" cannot get resource "investigations/trace"'


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError(401, "Unauthorized", "Unauthorized"), "the credentials of context prod are not accepted"),
        (
            ApiError(403, "Forbidden", 'User "system:anonymous" cannot get path'),
            "the credentials of context prod are not accepted",
        ),
        (
            ApiError(403, "Forbidden", BY_RBAC),
            "`kubectl create rolebinding NAME --clusterrole=tarsy-tracer --user=ada -n shop`",
        ),
        (ApiError(404, "Not Found", "404 page not found"), "is it installed? See `kubectl get apiservice"),
        (
            ApiError(404, "NotFound", "the server could not find the requested resource"),
            "is it installed? See `kubectl get apiservice",
        ),
        (ApiError(404, "NotFound", "there is no investigation shop/run on record"), "no investigation shop/run"),
        (ApiError(503, "ServiceUnavailable", "no endpoints"), "cannot be read now: no endpoints. See `kubectl get"),
        (ApiError(0, "Unreachable", "could not be reached"), "could not be reached"),
        (ApiError(422, "Invalid", "spec: \x1b[31mno"), "spec: [31mno"),
    ],
)
def test_each_refusal_is_one_sentence_with_its_remedy(error: ApiError, words: str) -> None:
    found = refusal_error(error, READ_TRACE, "shop", "context prod")
    assert words in str(found)
    assert "\n" not in str(found) and "\x1b" not in str(found)
    assert isinstance(found, BrokenOff) == (error.status in (0, 503))


def test_in_all_namespaces_a_cluster_role_binding_is_what_helps() -> None:
    found = refusal_error(ApiError(403, "Forbidden", "no"), WRITE, None, "context prod")
    assert "`kubectl create clusterrolebinding NAME --clusterrole=tarsy-investigator`" in str(found)


@pytest.mark.parametrize(
    ("path", "namespace"), [("/namespaces/shop/investigations/run/timeline", "shop"), ("/investigations", None)]
)
def test_namespace_of_a_route_is_none_for_those_of_all_namespaces(path: str, namespace: str | None) -> None:
    assert namespace_of(path) == namespace
