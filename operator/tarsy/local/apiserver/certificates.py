"""The certificates of one Kubernetes control plane, made with the `cryptography` package.

Three authorities, because they answer three questions: who may use the API (`cluster`), who may read etcd (`etcd`), and
who may speak for other users (`front-proxy`). With one authority every issued user certificate would open etcd.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=365)
_CLOCK_SKEW = timedelta(minutes=5)
FRONT_PROXY_USER = "front-proxy-client"
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESSES = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A self-signed authority that lives in memory: its own key is never written."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"tarsy-local-{name}")])
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        user: str,
        groups: Sequence[str] = (),
        names: Sequence[str] = (),
        addresses: Sequence[str] = (),
    ) -> KeyPair:
        """A certificate for `user` in `groups` (Kubernetes reads CN and O); a server also has names it answers to."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
            + [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        )
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if names or addresses:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = (
            self._builder(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names or addresses:
            answers_to: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
            answers_to += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(answers_to), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _VALID)
        )


@dataclass(frozen=True)
class Pki:
    """The folder with every file that etcd and kube-apiserver are told about, and the authority for users."""

    folder: Path
    cluster: Authority

    def path(self, name: str) -> Path:
        """One of its files, such as `apiserver.crt`."""
        return self.folder / name


def create_pki(folder: Path) -> Pki:
    """Make all certificates and keys of a control plane on 127.0.0.1, readable by their owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    cluster, etcd, front_proxy = Authority("cluster"), Authority("etcd"), Authority("front-proxy")
    pki = Pki(folder, cluster)
    for name, authority in (("ca", cluster), ("etcd-ca", etcd), ("front-proxy-ca", front_proxy)):
        write_private(pki.path(f"{name}.crt"), authority.certificate)
    pairs = {
        "apiserver": cluster.issue("kube-apiserver", names=_SERVER_NAMES, addresses=_SERVER_ADDRESSES),
        "etcd": etcd.issue("etcd", names=("localhost",), addresses=("127.0.0.1",)),
        "etcd-client": etcd.issue("kube-apiserver"),
        "front-proxy-client": front_proxy.issue(FRONT_PROXY_USER),
        "admin": cluster.issue("kubernetes-admin", ["system:masters"]),
    }
    for name, pair in pairs.items():
        write_private(pki.path(f"{name}.crt"), pair.certificate)
        write_private(pki.path(f"{name}.key"), pair.key)
    write_private(pki.path("service-account.key"), _private_pem(ec.generate_private_key(ec.SECP256R1())))
    return pki


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on; an older one is replaced."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:  # noqa: PTH123
        handle.write(content)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # SEC 1 ("EC PRIVATE KEY"): the form every kube-apiserver reads, for service account keys too.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
