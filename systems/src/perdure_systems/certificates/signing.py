"""A certificate authority of one's own: a root and its key in one file, made when first used.

Servers that work together share the folder. The file is made in one step that only one of them wins, so that all of
them sign with the same root.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from perdure import Permanent

ROOT_FILE: Final = "root.pem"
KEYS: Final = "keys"
_ROOT_LIFETIME: Final = timedelta(days=3650)
_BACKDATED_BY: Final = timedelta(minutes=5)  # for clocks that lag
_COMMON_NAME_LIMIT_CHARACTERS: Final = 64  # X.509 allows no more; the alternative names have the whole of it
_LEAST_RSA_BITS: Final = 2048
_PEM: Final = serialization.Encoding.PEM


class Signed(msgspec.Struct, frozen=True):
    """An issued certificate with its chain, both as PEM."""

    serial: str
    chain: str
    not_after: datetime


class Authority:
    """Signs requests with the root in a folder, and keeps the keys that the server has made itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sign(self, csr: str, names: list[str], lifetime: timedelta, now: datetime) -> Signed:
        """A certificate for these names and the key of the request; raises `Permanent` if the request is no good."""
        request = read_csr(csr)
        root, key = self._root(now)
        not_after = now + lifetime
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_subject(names[0]))
            .issuer_name(root.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED_BY)
            .not_valid_after(not_after)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(request.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        chain = certificate.public_bytes(_PEM) + root.public_bytes(_PEM)
        return Signed(format(certificate.serial_number, "x"), chain.decode(), not_after)

    def make_key(self, common_name: str) -> str:
        """A new key, kept in a file that is named for it, and its request as PEM."""
        csr, key = make_csr(common_name)
        keys = self._folder / KEYS
        keys.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(keys / key_name(x509.load_pem_x509_csr(csr.encode())), key.encode())
        return csr

    def key_file(self, chain: str) -> Path | None:
        """Where the key of a certificate is; None if it was made elsewhere."""
        path = self._folder / KEYS / key_name(x509.load_pem_x509_certificate(chain.encode()))
        return path if path.exists() else None

    def _root(self, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        file = self._folder / ROOT_FILE
        if not file.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_once(file, _new_root(now))
        content = file.read_bytes()
        key = serialization.load_pem_private_key(content, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise Permanent(f"{file} holds no elliptic curve key")
        return x509.load_pem_x509_certificate(content), key


def _new_root(now: datetime) -> bytes:
    """A key and its own certificate, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("certctl root")
    root = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED_BY)
        .not_valid_after(now + _ROOT_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signature=False), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return private_pem(key) + root.public_bytes(_PEM)


def read_csr(text: str) -> x509.CertificateSigningRequest:
    """A request whose signature is its own and whose key is strong enough; anything else is a permanent error."""
    try:
        request = x509.load_pem_x509_csr(text.encode())
        is_valid = request.is_signature_valid
    except Exception as error:  # noqa: BLE001 - the parser has many errors, and all mean the same
        raise Permanent(f"csr is not a certificate signing request in PEM: {error}") from None
    if not is_valid:
        raise Permanent("csr has an invalid signature")
    key = request.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _LEAST_RSA_BITS:
        raise Permanent(f"csr has an RSA key of {key.key_size} bits: use at least {_LEAST_RSA_BITS}")
    return request


def make_csr(common_name: str) -> tuple[str, str]:
    """A new key and its request, both as PEM: what an agent does where the certificate will be used."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(_subject(common_name)).sign(key, hashes.SHA256())
    return request.public_bytes(_PEM).decode(), private_pem(key).decode()


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM."""
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def key_name(of: x509.Certificate | x509.CertificateSigningRequest) -> str:
    """The file name of a private key: the identifier of its public one."""
    return f"{x509.SubjectKeyIdentifier.from_public_key(of.public_key()).digest.hex()}.pem"


def _subject(common_name: str) -> x509.Name:
    is_short = len(common_name) <= _COMMON_NAME_LIMIT_CHARACTERS
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if is_short else [])


def _usage(*, signature: bool) -> x509.KeyUsage:
    """What a key is for: signatures of a server, or certificates and revocation lists of an authority."""
    return x509.KeyUsage(
        digital_signature=signature,
        key_cert_sign=not signature,
        crl_sign=not signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_once(path: Path, content: bytes) -> None:
    """Write a file that only we can read, whole or not at all; one that is there already stays."""
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    temporary.touch(mode=0o600)
    try:
        temporary.write_bytes(content)
        with suppress(FileExistsError):  # another server was faster
            os.link(temporary, path)
    finally:
        temporary.unlink()
