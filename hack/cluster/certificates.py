"""Creates certificates, keys and kubeconfigs of the one-node cluster: `certificates.py FOLDER ADDRESS`.

Decision: each part of the control plane is its own user, with the role that Kubernetes itself binds to that user; only
the person's kubeconfig is of `system:masters`. All of it is new at each start, as the cluster is.
"""

import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from embedded_kubeapi.pki import (
    FRONT_PROXY_USER,
    SERVER_NAMES,
    Authority,
    kubeconfig_document,
    private_pem,
    write_private,
)

NODE = "tarsy-cluster"
"""The node's name; node.sh says the same."""
SERVICE = "198.18.2.1"
"""The address of the Service `kubernetes`: the first of the range that node.sh gives to Services."""
USERS = {
    "admin": ("kubernetes-admin", ["system:masters"]),
    "controller-manager": ("system:kube-controller-manager", []),
    "scheduler": ("system:kube-scheduler", []),
    "proxy": ("system:kube-proxy", []),
    "kubelet": (f"system:node:{NODE}", ["system:nodes"]),
}


def main(folder: Path, address: str) -> None:
    """Writes everything into `folder`, readable by its owner only; `address` is the node's."""
    cluster, etcd, front_proxy = Authority("cluster"), Authority("etcd"), Authority("front-proxy")
    for name, authority in (("ca", cluster), ("etcd-ca", etcd), ("front-proxy-ca", front_proxy)):
        write_private(folder / f"{name}.crt", authority.certificate)
    pairs = {
        "apiserver": cluster.issue("kube-apiserver", names=SERVER_NAMES, addresses=("127.0.0.1", address, SERVICE)),
        "apiserver-kubelet": cluster.issue("kube-apiserver-kubelet-client", ["system:masters"]),
        "kubelet-server": cluster.issue(f"system:node:{NODE}", names=(NODE,), addresses=(address,)),
        "etcd": etcd.issue("etcd", names=("localhost",), addresses=("127.0.0.1",)),
        "etcd-client": etcd.issue("kube-apiserver"),
        "front-proxy-client": front_proxy.issue(FRONT_PROXY_USER),
    }
    for name, pair in pairs.items():
        write_private(folder / f"{name}.crt", pair.certificate)
        write_private(folder / f"{name}.key", pair.key)
    write_private(folder / "service-account.key", private_pem(ec.generate_private_key(ec.SECP256R1())))
    for name, (user, groups) in USERS.items():
        document = kubeconfig_document(
            f"https://{address}:6443", cluster.certificate, user, cluster.issue(user, groups)
        )
        write_private(folder / f"{name}.kubeconfig", document)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
