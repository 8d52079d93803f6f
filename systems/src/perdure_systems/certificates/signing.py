"""A certificate authority of one's own: a root and a key in a folder, made when first used."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from perdure import Permanent

_ROOT_LIFETIME: Final = timedelta(days=3650)
_BACKDATE: Final = timedelta(minutes=5)  # for clocks that lag
_PEM: Final = serialization.Encoding.PEM


class Signed(msgspec.Struct, frozen=True):
    """An issued certificate with its chain, both as PEM."""

    serial: str
    chain: str
    not_after: datetime


class Authority:
    """Signs requests with the root in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sign(self, csr: str, names: list[str], lifetime: timedelta, now: datetime) -> Signed:
        """A certificate for these names and the key of the request; raises `Permanent` if the request is no good."""
        request = read_csr(csr)
        root, key = self._root(now)
        not_after = now + lifetime
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]))
            .issuer_name(root.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(not_after)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(key, hashes.SHA256())
        )
        chain = certificate.public_bytes(_PEM) + root.public_bytes(_PEM)
        return Signed(format(certificate.serial_number, "x"), chain.decode(), not_after)

    def _root(self, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        certificate_file, key_file = self._folder / "root.pem", self._folder / "root.key"
        if not certificate_file.exists():
            self._make_root(certificate_file, key_file, now)
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise Permanent(f"{key_file} holds no elliptic curve key")
        return x509.load_pem_x509_certificate(certificate_file.read_bytes()), key

    def _make_root(self, certificate_file: Path, key_file: Path, now: datetime) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "certctl root")])
        root = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(now + _ROOT_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write_new(key_file, private_pem(key))
        _write_new(certificate_file, root.public_bytes(_PEM))


def read_csr(text: str) -> x509.CertificateSigningRequest:
    """A request whose signature is its own; anything else is a permanent error."""
    try:
        request = x509.load_pem_x509_csr(text.encode())
    except ValueError as error:
        raise Permanent(f"csr is not a certificate signing request in PEM: {error}") from None
    if not request.is_signature_valid:
        raise Permanent("csr has an invalid signature")
    return request


def make_csr(common_name: str) -> tuple[str, str]:
    """A new key and its request, both as PEM: what an agent does where the certificate will be used."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return request.public_bytes(_PEM).decode(), private_pem(key).decode()


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM."""
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that only we can read, in one step: another server may be doing the same."""
    temporary = path.with_suffix(f".{os.getpid()}.new")
    temporary.touch(mode=0o600)
    temporary.write_bytes(content)
    temporary.replace(path)
