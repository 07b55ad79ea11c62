"""Provides a pytest fixture with a Kubernetes API for the tests of an operator."""

from collections.abc import Iterator

import pytest

from embedded_kubeapi.server import EmbeddedApi


@pytest.fixture(scope="session")
def kubernetes_api() -> Iterator[EmbeddedApi]:
    """Starts one API for all tests of a session; `kubernetes_api.kubeconfig` is the administrator's kubeconfig."""
    with EmbeddedApi() as api:
        yield api
