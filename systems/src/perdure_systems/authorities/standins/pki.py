"""Keys and certificates for the stand-ins: real X.509, made in memory, worth nothing outside."""

from __future__ import annotations

from datetime import datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY: Final = timedelta(days=1)
_USES: Final = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
                "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip


class Issuer(msgspec.Struct, frozen=True):
    """A certificate with its private key, and the issuer that signed it; a root signed itself."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    parent: Issuer | None = None

    @property
    def pem(self) -> str:
        """The certificate alone."""
        return as_pem(self.certificate)

    @property
    def key_pem(self) -> str:
        """The private key, not encrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    @property
    def root(self) -> Issuer:
        """The top of the chain."""
        return self if self.parent is None else self.parent.root


def new_root(name: str, at: datetime) -> Issuer:
    """A certificate authority of our own."""
    key = new_key()
    builder = _builder(_named(name), _named(name), key.public_key(), at, 3_650)
    return Issuer(_as_authority(builder, key, key, path_length=None), key)


def new_intermediate(root: Issuer, name: str, at: datetime) -> Issuer:
    """An authority below a root, which signs leaves."""
    key = new_key()
    builder = _builder(_named(name), root.certificate.subject, key.public_key(), at, 1_825)
    return Issuer(_as_authority(builder, key, root.key, path_length=0), key, root)


def sign_request(issuer: Issuer, csr: x509.CertificateSigningRequest, serial: int, at: datetime) -> x509.Certificate:
    """The certificate that a CSR asks for, valid for 90 days."""
    builder = _builder(csr.subject, issuer.certificate.subject, csr.public_key(), at, 90, serial)
    names = _names_of(csr)
    return _as_leaf(builder, issuer, csr.public_key(), names, ExtendedKeyUsageOID.SERVER_AUTH)


def new_server(issuer: Issuer, at: datetime) -> Issuer:
    """What a local server shows in TLS: good for localhost and 127.0.0.1."""
    key = new_key()
    builder = _builder(_named("localhost"), issuer.certificate.subject, key.public_key(), at, 30)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
    return Issuer(_as_leaf(builder, issuer, key.public_key(), names, ExtendedKeyUsageOID.SERVER_AUTH), key, issuer)


def new_client(issuer: Issuer, name: str, at: datetime) -> Issuer:
    """What a client shows in mutual TLS."""
    key = new_key()
    builder = _builder(_named(name), issuer.certificate.subject, key.public_key(), at, 30)
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    return Issuer(_as_leaf(builder, issuer, key.public_key(), names, ExtendedKeyUsageOID.CLIENT_AUTH), key, issuer)


def new_request(*names: str) -> str:
    """A CSR for these names with a fresh key, as PEM; for demos and tests, which need no key afterwards."""
    key = new_key()
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    builder = x509.CertificateSigningRequestBuilder(_named(names[0])).add_extension(alternatives, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def new_key() -> ec.EllipticCurvePrivateKey:
    """A key on the curve P-256: quick to make."""
    return ec.generate_private_key(ec.SECP256R1())


def as_pem(certificate: x509.Certificate) -> str:
    """The text of a certificate."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner reads."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: CertificatePublicKeyTypes,
    at: datetime,
    days: int,
    serial: int | None = None,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number() if serial is None else serial)
        .not_valid_before(at - _DAY)
        .not_valid_after(at + days * _DAY)
    )


def _as_authority(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    path_length: int | None,
) -> x509.Certificate:
    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )


def _as_leaf(
    builder: x509.CertificateBuilder,
    issuer: Issuer,
    key: CertificatePublicKeyTypes,
    names: list[x509.GeneralName],
    use: x509.ObjectIdentifier,
) -> x509.Certificate:
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), critical=False)
        .sign(issuer.key, hashes.SHA256())
    )


def _names_of(csr: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        return list(csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        common = csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return [x509.DNSName(str(attribute.value)) for attribute in common]


def _usage(*uses: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{use: use in uses for use in _USES})


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
