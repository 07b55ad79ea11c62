"""Creates serving certificates, and the TLS contexts that verify client certificates.

Decision: each CA signs one certificate, and its key is discarded afterwards, so no second certificate can be issued. A
renewal creates a new CA beside the old one (`merge_authorities`).
"""

import secrets
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=90)
RENEWED_BEFORE = timedelta(days=30)
AUTHORITIES = 32
_SKEW = timedelta(minutes=5)
_AUTHORITY = "tarsy-record"


class CertificateError(Exception):
    """A certificate or key cannot be used; the message names it, but never contains its content."""


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A serving certificate as PEM: certificate, key, and the CA for clients."""

    certificate: str
    key: str = field(repr=False)
    authority: str


def make_certificate(names: Sequence[str], moment: datetime) -> ServingCertificate:
    """Creates a certificate and its CA.

    Args:
        names: DNS names of the server.
        moment: start of the validity, of 90 days.
    """
    signing, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{_AUTHORITY}-{secrets.token_hex(8)}")])

    def builder(subject: x509.Name, public_key: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.CertificateBuilder:
        """Prepares the unsigned certificate of `subject` and its `public_key`; `ca`: whether it may sign others."""
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment - _SKEW)
            .not_valid_after(moment + VALID)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
            .add_extension(_usage(ca=ca), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        )

    authority = builder(issuer, signing.public_key(), ca=True).sign(signing, hashes.SHA256())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    certificate = (
        builder(subject, key.public_key(), ca=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(signing, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return ServingCertificate(_pem(certificate), private.decode(), _pem(authority))


def read_certificate(folder: Path) -> ServingCertificate:
    """Reads the certificate in a folder: `tls.crt`, `tls.key` and, if it exists, `ca.crt`.

    Raises:
        CertificateError: the files cannot be read.
    """
    authority = folder / "ca.crt"
    try:
        return ServingCertificate(
            (folder / "tls.crt").read_text(),
            (folder / "tls.key").read_text(),
            authority.read_text() if authority.exists() else "",
        )
    except (OSError, UnicodeDecodeError):
        raise CertificateError(f"{folder}: cannot read tls.crt and tls.key") from None


def needs_renewal(own: ServingCertificate, moment: datetime) -> bool:
    """Returns whether a certificate expires within 30 days."""
    certificate = x509.load_pem_x509_certificate(own.certificate.encode())
    return certificate.not_valid_after_utc - moment < RENEWED_BEFORE


def merge_authorities(authority: str, present: str, moment: datetime) -> str:
    """Merges a CA into the present ones; removes expired ones, and the oldest beyond 32.

    Args:
        authority: PEM of the CA to add.
        present: PEM of the present CAs; unreadable content is dropped.
        moment: current time.
    """
    try:
        found = x509.load_pem_x509_certificates(present.encode())
    except ValueError:
        found = []
    own = x509.load_pem_x509_certificate(authority.encode())
    others = [one for one in found if one != own and one.not_valid_after_utc > moment]
    others.sort(key=lambda one: one.not_valid_before_utc, reverse=True)
    kept = sorted([own, *others[: AUTHORITIES - 1]], key=lambda one: (one.not_valid_before_utc, one.serial_number))
    return "".join(_pem(one) for one in kept)


def server_context(own: ServingCertificate, client_authority: str | None = None) -> ssl.SSLContext:
    """Creates the TLS context of a server.

    Args:
        own: the serving certificate.
        client_authority: PEM of the CA that clients must have a certificate of; None: clients need no certificate.

    Raises:
        CertificateError: one of them cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    show_certificate(context, own)
    if client_authority is not None:
        try:
            context.load_verify_locations(cadata=client_authority)
        except (ssl.SSLError, ValueError):
            raise CertificateError("requestheader-client-ca-file is not a certificate") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def show_certificate(context: ssl.SSLContext, own: ServingCertificate) -> None:
    """Loads a serving certificate into a TLS context, for new connections. Raises CertificateError."""
    with tempfile.TemporaryDirectory(prefix="tarsy-") as folder:  # mode 0700; `ssl` reads files only
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_text(own.certificate)
        key.write_text(own.key)
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, ValueError):
            raise CertificateError("the certificate or key of a server is malformed, or they do not match") from None


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
