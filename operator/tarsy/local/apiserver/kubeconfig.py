"""A kubeconfig that needs no other file: certificates are inside, so it works from any folder and machine account."""

import base64

import yaml

from tarsy.local.apiserver.certificates import KeyPair


def kubeconfig_document(url: str, authority: bytes, user: str, pair: KeyPair) -> bytes:
    """YAML with one cluster, one user and one context in the namespace `default`; `authority` is PEM."""
    cluster = {"server": url, "certificate-authority-data": _base64(authority)}
    login = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": user, "user": login}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user, "namespace": "default"}}],
        "current-context": "local",
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
