"""Tests how the Kubernetes tool server finds its access to a Kubernetes API; uses temporary files, no network."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tarsy.kubernetes_tools.access import AccessError, find_access, from_kubeconfig


def config(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    content = {
        "current-context": "c",
        "contexts": [{"name": "other"}, {"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_kubeconfig_gives_server_authority_and_token(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    cluster = {"server": "https://k:6443/", "certificate-authority-data": data}
    path = config(tmp_path, cluster, {"token": "sesame"})
    access = find_access({"KUBECONFIG": f"{path}:/other", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, account=tmp_path)
    assert (access.url, access.authority) == ("https://k:6443", "PEM")
    assert access.headers() == {"Authorization": "Bearer sesame"}


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(f"<{name}>")
    path = config(
        tmp_path,
        {"server": "https://k", "certificate-authority": "ca"},
        {"client-certificate": "crt", "client-key": "key"},
    )
    access = from_kubeconfig(path)
    assert (access.authority, access.client, access.headers()) == ("<ca>", ("<crt>", "<key>"), {})
    with pytest.raises(AccessError, match="certificates for https://k cannot be used"):
        access.tls()


def test_in_a_pod_the_service_account_is_taken_and_its_token_read_anew(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_text("PEM")
    access = find_access({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, account=tmp_path)
    assert access.url == "https://[fd00::1]:6443"
    (tmp_path / "token").write_text("two\n")
    assert access.headers() == {"Authorization": "Bearer two"}
    (tmp_path / "token").unlink()
    with pytest.raises(AccessError, match="token cannot be read"):
        access.headers()


@pytest.mark.parametrize(
    ("cluster", "user", "sentence"),
    [
        ({"server": "https://k"}, {"exec": {"command": "login"}}, "logs in by another program"),
        ({}, {}, "not a complete kubeconfig: KeyError\\('server'\\)"),
        ({"server": "https://k", "certificate-authority": "nowhere"}, {}, "nowhere"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_why(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AccessError, match=sentence):
        from_kubeconfig(config(tmp_path, cluster, user))


def test_without_any_way_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="set KUBECONFIG"):
        find_access({"HOME": str(tmp_path)}, account=tmp_path)
    with pytest.raises(AccessError, match="cannot be read"):
        find_access({"KUBECONFIG": str(tmp_path / "nowhere")})
