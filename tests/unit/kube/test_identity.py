"""Tests a client that shares its connections: it uses nothing of its own identity."""

from kubernetes.aio.client import Configuration

from tarsy.kube.client import Connection, KubeClient


def somebody() -> KubeClient:
    known = Configuration()
    known.host, known.ssl_ca_cert, known.verify_ssl = "https://api.example", "ca.crt", True
    known.cert_file, known.key_file = "operator.crt", "operator.key"
    known.api_key = {"BearerToken": "Bearer operator"}
    return KubeClient(known)


async def test_a_client_without_identity_keeps_the_place_and_nothing_of_who_asks() -> None:
    client = somebody()
    assert await client.token() == "operator"
    nobody = client.without_identity()
    assert await nobody.connection() == Connection("https://api.example", "ca.crt", None, None, False)
    assert await nobody.token() is None


async def test_lent_tokens_are_each_their_owners() -> None:
    nobody = somebody().without_identity()
    lent = [nobody.bearing(token) for token in ("ann", "bob")]
    assert [await client.token() for client in lent] == ["ann", "bob"]
    assert await nobody.token() is None
