"""Certificate signing requests: what is read from them, and what is refused."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from perdure import ArgumentError

_LEAST_RSA_BITS: Final = 2048
_CSR_LIMIT_CHARACTERS: Final = 32_768
_DNS_NAMES_LIMIT: Final = 250
_DNS_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9-]{1,63}"
)


class SigningRequest(msgspec.Struct, frozen=True):
    """What a CSR asks for. The first of `names` is the common name, or else the first alternative name.

    `pem` is written again, without the text around it. `key` is the public key, as DER.
    """

    pem: str
    names: tuple[str, ...]
    key: bytes

    @property
    def common_name(self) -> str:
        """The name that people know the certificate by."""
        return self.names[0]


def read_request(pem: str) -> SigningRequest:
    """Read a CSR; raises ArgumentError, which says what is wrong with it and never shows its text."""
    if len(pem) > _CSR_LIMIT_CHARACTERS:
        raise ArgumentError("csr", f"must have at most {_CSR_LIMIT_CHARACTERS:,} characters, got {len(pem):,}")
    try:
        request = x509.load_pem_x509_csr(pem.encode())
        is_signed = request.is_signature_valid
        key = request.public_key()
        names = _names_of(request)
    except (ValueError, UnsupportedAlgorithm, InvalidSignature, x509.DuplicateExtension) as error:
        raise ArgumentError("csr", f"must be a certificate signing request in PEM: {error}") from None
    if not is_signed:
        raise ArgumentError("csr", "has a signature that does not match its key: make it again")
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _LEAST_RSA_BITS:
        raise ArgumentError("csr", f"must have an RSA key of at least {_LEAST_RSA_BITS} bits, got {key.key_size}")
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise ArgumentError("csr", "must have an RSA, elliptic curve or Ed25519 key")
    if not names:
        raise ArgumentError("csr", "must name at least one DNS name: as common name or as subject alternative name")
    if len(names) > _DNS_NAMES_LIMIT:
        raise ArgumentError("csr", f"must name at most {_DNS_NAMES_LIMIT} DNS names, got {len(names)}")
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SigningRequest(request.public_bytes(Encoding.PEM).decode(), names, der)


def _names_of(request: x509.CertificateSigningRequest) -> tuple[str, ...]:
    common = [str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        extension = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        others = extension.value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        others = []
    wrong = [name for name in others if not _DNS_NAME.fullmatch(name)]
    if wrong:
        raise ValueError(f"{wrong[0][:100]!r} is no DNS name")
    known = [name for name in common if _DNS_NAME.fullmatch(name)]  # it may be the name of a company, too
    return tuple(dict.fromkeys(name.lower() for name in (*known, *others)))
