"""Certificates as an authority delivers them: whether they match the order and lead to a trusted root.

`verify` finds the leaf by the key of the order, in any order of the certificates in the response. It then builds
the path to a trusted root with the X.509 verifier of `cryptography`, which checks signatures, times, names and uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import certifi
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509 import verification

from perdure import SettingsError
from perdure_systems.authorities.failures import CertificateMissing, NotTrusted, Unreadable

_PEM: Final = serialization.Encoding.PEM


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate with its chain, leaf first, without the root."""

    serial: str
    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    fingerprint: str
    chain: str


def require_certificate(who: str, order: str, text: str) -> str:
    """The PEM text of an issued order; without a certificate it is an error, and so is text that is no PEM (D10)."""
    if not text.strip():
        raise CertificateMissing(f"{who} says that order {order} is issued, and gives no certificate")
    _parsed(who, order, text)
    return text


def verify(who: str, order: str, pem: str, csr: str, roots: Path | None, at: datetime) -> Verified:
    """The certificate, if it has the key and the names of the CSR and leads to a trusted root; raises `NotTrusted`."""
    request = x509.load_pem_x509_csr(csr.encode())
    found = _parsed(who, order, pem)
    leaves = [one for one in found if one.public_key() == request.public_key()]
    if not leaves:
        raise NotTrusted(f"{who} delivered no certificate for the key of order {order}")
    leaf = leaves[0]
    names = _dns_names(leaf)
    missing = sorted(_wanted_names(request) - {name.lower() for name in names})
    if missing or not names:
        raise NotTrusted(
            f"the certificate of order {order} from {who} lacks the names {', '.join(missing) or 'of DNS'}"
        )
    store = verification.Store(_roots(roots))
    verifier = verification.PolicyBuilder().store(store).time(at).build_server_verifier(x509.DNSName(names[0]))
    try:
        path = verifier.verify(leaf, [one for one in found if one is not leaf])
    except verification.VerificationError as error:
        raise NotTrusted(f"the certificate of order {order} from {who} cannot be trusted: {error}") from None
    return Verified(
        serial=f"{leaf.serial_number:x}",
        subject=leaf.subject.rfc4514_string(),
        issuer=leaf.issuer.rfc4514_string(),
        names=tuple(names),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        fingerprint=leaf.fingerprint(hashes.SHA256()).hex(),
        chain="".join(one.public_bytes(_PEM).decode() for one in path[:-1]),
    )


def _parsed(who: str, order: str, text: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError as error:
        raise Unreadable(f"{who} delivered order {order} as something that is no PEM certificate: {error}") from None


def _dns_names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return []
    return names.value.get_values_for_type(x509.DNSName)


def _wanted_names(request: x509.CertificateSigningRequest) -> set[str]:
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {name.lower() for name in names.value.get_values_for_type(x509.DNSName)}


def _roots(path: Path | None) -> list[x509.Certificate]:
    file = Path(certifi.where()) if path is None else path
    try:
        return list(x509.load_pem_x509_certificates(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise SettingsError("ROOTS_PATH", f"{str(file)!r} must be a file of PEM certificates: {error}") from None
