"""Creates the certificates of a local Kubernetes API: a CA for the server and its users, one for the front proxy.

New at each start, in a folder of the server's own; the authorities' keys are never written. The real server
(`tarsy_dev.apiserver`) makes its own from the same parts.
"""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID, _SKEW = timedelta(days=365), timedelta(minutes=5)
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
FRONT_PROXY_USER = "front-proxy-client"


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues certificates; its key lives in memory only."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"tarsy-local-{name}")])
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, user: str, groups: Sequence[str] = (), *, names: Sequence[str] = (), addresses: Sequence[str] = ()
    ) -> KeyPair:
        """A certificate for `user` in `groups` (Kubernetes reads CN and O); a server also has names it answers to."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        answers_to: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        answers_to += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if answers_to else [])]
        builder = (
            self._builder(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if answers_to:
            builder = builder.add_extension(x509.SubjectAlternativeName(answers_to), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        present = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(present - _SKEW)
            .not_valid_after(present + _VALID)
        )


@dataclass(frozen=True)
class Pki:
    """The folder of certificates that others may read from, and the authority for users."""

    folder: Path
    cluster: Authority

    def path(self, name: str) -> Path:
        """Returns the path of a file, such as `ca.crt`."""
        return self.folder / name


def create_pki(folder: Path) -> Pki:
    """Make the authorities and the server's certificates, readable by their owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    cluster, front_proxy = Authority("cluster"), Authority("front-proxy")
    pki = Pki(folder, cluster)
    write_private(pki.path("ca.crt"), cluster.certificate)
    write_private(pki.path("front-proxy-ca.crt"), front_proxy.certificate)
    pairs = {
        "apiserver": cluster.issue("kube-apiserver", names=SERVER_NAMES, addresses=("127.0.0.1",)),
        "front-proxy-client": front_proxy.issue(FRONT_PROXY_USER),
    }
    for name, pair in pairs.items():
        write_private(pki.path(f"{name}.crt"), pair.certificate)
        write_private(pki.path(f"{name}.key"), pair.key)
    return pki


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on; an older one is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:  # noqa: PTH123
        handle.write(content)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """SEC 1 ("EC PRIVATE KEY"): the form every kube-apiserver reads, for service account keys too."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def kubeconfig_document(url: str, authority: bytes, user: str, pair: KeyPair) -> bytes:
    """A kubeconfig that needs no other file: one cluster, user and context; `authority` is PEM."""
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
