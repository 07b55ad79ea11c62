"""Loads the access to a Kubernetes API from a kubeconfig or from inside a cluster.

Written by hand because a Kubernetes client takes longer to import than this whole server. Tokens in files are read at
every request, so that a rotated one applies to the next.
"""

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class AccessError(Exception):
    """No usable access to the Kubernetes API; the text names what is missing."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """URL, CA and credentials of the API. `client` is certificate and key, both PEM."""

    url: str
    authority: str | None = None
    insecure: bool = False
    token: str | None = None
    token_file: Path | None = None
    client: tuple[str, str] | None = None

    def headers(self) -> dict[str, str]:
        """The headers that say who asks, fresh. Raises AccessError: the token's file cannot be read."""
        token = self.token
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise AccessError(f"the token file {self.token_file} cannot be read: {error.strerror}") from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    def tls(self) -> ssl.SSLContext:
        """Returns the TLS settings: trusted CAs and the client's certificate."""
        try:
            context = ssl.create_default_context(cadata=self.authority)
            if self.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.client is not None:
                with tempfile.TemporaryDirectory() as folder:  # the ssl module takes them from files only
                    certificate, key = Path(folder, "certificate"), Path(folder, "key")
                    certificate.write_text(self.client[0], encoding="ascii")
                    key.write_text(self.client[1], encoding="ascii")
                    context.load_cert_chain(certificate, key)
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(f"the certificates for {self.url} cannot be used: {error}") from error
        return context


def find_access(environ: Mapping[str, str] = os.environ, account: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """Returns the access by KUBECONFIG, else by the pod's ServiceAccount, else by ~/.kube/config.

    Raises AccessError: there is none, or it cannot be used.
    """
    if given := environ.get("KUBECONFIG"):
        return from_kubeconfig(Path(given.split(os.pathsep)[0]))
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if host and (account / "token").exists():
        authority = (account / "ca.crt").read_text(encoding="ascii")
        where = f"[{host}]" if ":" in host else host
        return ClusterAccess(f"https://{where}:{port}", authority=authority, token_file=account / "token")
    home = Path(environ.get("HOME") or "/") / ".kube" / "config"
    if home.exists():
        return from_kubeconfig(home)
    raise AccessError("no way to a Kubernetes API: set KUBECONFIG to a kubeconfig file, or run in a cluster's pod")


def from_kubeconfig(path: Path) -> ClusterAccess:
    """Returns the access of a kubeconfig's current context.

    Raises AccessError: unreadable, incomplete, or with a login that needs another program.
    """
    import yaml  # only here: a server in a cluster has no use for it

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(config, "contexts", "context", config["current-context"])
        cluster = _named(config, "clusters", "cluster", context["cluster"])
        user = _named(config, "users", "user", context["user"]) if context.get("user") else {}
        if "exec" in user or "auth-provider" in user:
            raise AccessError(
                f"user {context['user']} of {path} logs in by another program: give a kubeconfig with a token"
            )
        authority = _data(cluster, "certificate-authority", path)
        pair = (_data(user, "client-certificate", path), _data(user, "client-key", path))
        return ClusterAccess(
            url=str(cluster["server"]).rstrip("/"),
            authority=authority,
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            token=user.get("token"),
            token_file=path.parent / user["tokenFile"] if "tokenFile" in user else None,
            client=(pair[0], pair[1]) if pair[0] and pair[1] else None,
        )
    except OSError as error:
        raise AccessError(f"the kubeconfig {path} cannot be read: {error}") from error
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AccessError(f"{path} is not a complete kubeconfig: {error!r}") from error


def _named(config: Mapping[str, Any], section: str, key: str, name: str) -> dict[str, Any]:
    for item in config.get(section) or ():
        if item.get("name") == name:
            return dict(item.get(key) or {})
    raise ValueError(f"{section} has no {name}")


def _data(part: Mapping[str, Any], key: str, path: Path) -> str | None:
    """A PEM text that is there as base64 data or in a file (relative to the kubeconfig)."""
    if data := part.get(f"{key}-data"):
        return base64.b64decode(data).decode("ascii")
    return (path.parent / part[key]).read_text(encoding="ascii") if part.get(key) else None
