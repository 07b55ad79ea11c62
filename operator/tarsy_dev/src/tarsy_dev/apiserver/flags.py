"""Builds the command lines of etcd and kube-apiserver; pure functions of certificates, folders, ports.

One set of flags serves Kubernetes 1.20 (Debian's) to the current releases: every flag here exists in all of them.
"""

from __future__ import annotations

from pathlib import Path

from embedded_kubeapi.pki import FRONT_PROXY_USER, Pki
from tarsy_dev.apiserver.binaries import Binaries

SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc.cluster.local"


def etcd_command(binaries: Binaries, pki: Pki, data: Path, port: int, no_fsync: bool) -> list[str]:
    """Returns the command of a one-member etcd, which accepts clients and peers with a certificate of the etcd CA.

    Args:
        data: the data directory.
        port: of its client URL on 127.0.0.1.
        no_fsync: whether to skip fsync, which is faster and loses data when the machine crashes.
    """
    client, peer = f"https://127.0.0.1:{port}", "https://127.0.0.1:0"
    flags = {
        "name": "local",
        "data-dir": data,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"local={peer}",
        "cert-file": pki.path("etcd.crt"),
        "key-file": pki.path("etcd.key"),
        "client-cert-auth": "true",
        "trusted-ca-file": pki.path("etcd-ca.crt"),
        "peer-cert-file": pki.path("etcd.crt"),
        "peer-key-file": pki.path("etcd.key"),
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": pki.path("etcd-ca.crt"),
        "log-level": "warn",
    }
    if no_fsync:
        flags["unsafe-no-fsync"] = "true"
    return [str(binaries.etcd), *_written(flags)]


def apiserver_command(binaries: Binaries, pki: Pki, port: int, etcd_port: int) -> list[str]:
    """Returns the command of kube-apiserver with RBAC, service account tokens, admission webhooks and aggregation.

    `port` and `etcd_port` are ports on 127.0.0.1: its own, and that of etcd.

    The ServiceAccount admission plug-in is off: without a controller-manager no namespace has a `default` account, and
    the plug-in would refuse every pod. No endpoints are published for the `kubernetes` service: there is no pod network
    to reach it from. An aggregated API on this machine is reached by a Service of type ExternalName with 127.0.0.1.
    """
    flags = {
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": pki.path("apiserver.crt"),
        "tls-private-key-file": pki.path("apiserver.key"),
        "client-ca-file": pki.path("ca.crt"),
        "etcd-servers": f"https://127.0.0.1:{etcd_port}",
        "etcd-cafile": pki.path("etcd-ca.crt"),
        "etcd-certfile": pki.path("etcd-client.crt"),
        "etcd-keyfile": pki.path("etcd-client.key"),
        "authorization-mode": "RBAC",
        "service-account-issuer": SERVICE_ACCOUNT_ISSUER,
        "service-account-key-file": pki.path("service-account.key"),
        "service-account-signing-key-file": pki.path("service-account.key"),
        "requestheader-client-ca-file": pki.path("front-proxy-ca.crt"),
        "requestheader-allowed-names": FRONT_PROXY_USER,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": pki.path("front-proxy-client.crt"),
        "proxy-client-key-file": pki.path("front-proxy-client.key"),
        "enable-aggregator-routing": "false",
        "disable-admission-plugins": "ServiceAccount",
        "endpoint-reconciler-type": "none",
        "service-cluster-ip-range": "10.0.0.0/24",
        "allow-privileged": "true",
        "profiling": "false",
    }
    return [str(binaries.kube_apiserver), *_written(flags)]


def _written(flags: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
