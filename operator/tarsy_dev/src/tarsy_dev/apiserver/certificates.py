"""Creates the certificates of a real local control plane, with the PKI functions of the embedded API.

Three authorities, because they answer three questions: who may use the API (`cluster`), who may read etcd (`etcd`), and
who may speak for other users (`front-proxy`). With one authority every issued user certificate would open etcd.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from embedded_kubeapi.pki import FRONT_PROXY_USER, SERVER_NAMES, Authority, Pki, private_pem, write_private

_SERVER_ADDRESSES = ("127.0.0.1", "10.0.0.1")


def create_pki(folder: Path) -> Pki:
    """Make all certificates and keys of a control plane on 127.0.0.1, readable by their owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    cluster, etcd, front_proxy = Authority("cluster"), Authority("etcd"), Authority("front-proxy")
    pki = Pki(folder, cluster)
    for name, authority in (("ca", cluster), ("etcd-ca", etcd), ("front-proxy-ca", front_proxy)):
        write_private(pki.path(f"{name}.crt"), authority.certificate)
    pairs = {
        "apiserver": cluster.issue("kube-apiserver", names=SERVER_NAMES, addresses=_SERVER_ADDRESSES),
        "etcd": etcd.issue("etcd", names=("localhost",), addresses=("127.0.0.1",)),
        "etcd-client": etcd.issue("kube-apiserver"),
        "front-proxy-client": front_proxy.issue(FRONT_PROXY_USER),
        "admin": cluster.issue("kubernetes-admin", ["system:masters"]),
    }
    for name, pair in pairs.items():
        write_private(pki.path(f"{name}.crt"), pair.certificate)
        write_private(pki.path(f"{name}.key"), pair.key)
    write_private(pki.path("service-account.key"), private_pem(ec.generate_private_key(ec.SECP256R1())))
    return pki
