"""A certificate is kept only if it is the one that was ordered, and a trusted root stands behind it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from systems.tests.authorities.support import after_a_drain, order

from perdure import ArgumentError
from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.chains import verify
from perdure_systems.authorities.csr import read_request
from perdure_systems.authorities.failures import NotTrusted, Unreadable
from perdure_systems.authorities.orders import find_order
from perdure_systems.authorities.records import find
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import StandIns, new_request
from perdure_systems.authorities.standins.clock import now
from perdure_systems.authorities.standins.pki import as_pem, new_intermediate, new_root, sign_request

ROOT = new_root("root", now())
ISSUING = new_intermediate(ROOT, "issuing", now())


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    file = tmp_path / "roots.pem"
    file.write_text(ROOT.pem)
    return file


def issued(csr: str) -> str:
    return as_pem(sign_request(ISSUING, x509.load_pem_x509_csr(csr.encode()), 4711, now()))


def test_a_chain_is_verified_in_any_order_of_its_certificates(roots: Path) -> None:
    csr = new_request("shop.example", "www.shop.example")
    for pem in (issued(csr) + ISSUING.pem, ISSUING.pem + issued(csr), ROOT.pem + issued(csr) + ISSUING.pem):
        found = verify("DigiCert", "1", pem, csr, roots, now())
        assert (found.serial, found.names) == ("1267", ("shop.example", "www.shop.example"))
        leaf, issuing = x509.load_pem_x509_certificates(found.chain.encode())
        assert (leaf.issuer, issuing) == (issuing.subject, ISSUING.certificate)


def test_what_is_wrong_with_a_certificate_is_said(roots: Path) -> None:
    csr, other = new_request("shop.example"), new_request("shop.example")
    cases = {
        "no certificate for the key": issued(other) + ISSUING.pem,
        "cannot be trusted": issued(csr),  # the intermediate is missing
    }
    for message, pem in cases.items():
        with pytest.raises(NotTrusted, match=message):
            verify("DigiCert", "1", pem, csr, roots, now())
    with pytest.raises(NotTrusted, match="cannot be trusted"):
        verify("DigiCert", "1", issued(csr) + ISSUING.pem, csr, roots, now() + timedelta(days=100))
    with pytest.raises(Unreadable):
        verify("DigiCert", "1", "-----BEGIN CERTIFICATE-----\nnope", csr, roots, now())


def test_a_certificate_without_all_ordered_names_is_refused(roots: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)

    def request(*names: str) -> x509.CertificateSigningRequest:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        builder = x509.CertificateSigningRequestBuilder(subject).add_extension(alternatives, critical=False)
        return builder.sign(key, hashes.SHA256())

    ordered = request("shop.example", "www.shop.example").public_bytes(serialization.Encoding.PEM).decode()
    pem = as_pem(sign_request(ISSUING, request("shop.example"), 1, now())) + ISSUING.pem
    with pytest.raises(NotTrusted, match=r"lacks the names www\.shop\.example"):
        verify("DigiCert", "1", pem, ordered, roots, now())


@pytest.mark.parametrize("authority", list(Authority))
async def test_a_certificate_of_an_untrusted_root_is_not_kept(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    standins.of(authority).behaviour.foreign_chain = True
    failed = await after_a_drain(sqlite_box, authority)
    assert (failed.status, failed.certificate) == ("failed", None)
    assert "NotTrusted" in (failed.error or "")


async def test_a_collected_certificate_is_verified_again_without_another_request(
    sqlite_box: Sandbox, standins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTCTL_DIGICERT_ROOTS_PATH", standins.environment["CERTCTL_ENTRUST_ROOTS_PATH"])
    failed = await after_a_drain(sqlite_box, Authority.DIGICERT)
    assert "NotTrusted" in (failed.error or "")
    requests = len(standins.digicert.seen)
    monkeypatch.setenv("CERTCTL_DIGICERT_ROOTS_PATH", standins.environment["CERTCTL_DIGICERT_ROOTS_PATH"])
    await (await jobs.app.desk("operator")).requeue(failed.id)
    await sqlite_box.drain()
    assert ((await find_order(failed.id)).status, len(standins.digicert.seen)) == ("issued", requests)


async def test_the_kept_certificate_is_the_one_that_was_issued(box: Sandbox, standins: StandIns) -> None:
    order_id = await order(Authority.SECTIGO, "shop.example", "www.shop.example")
    await box.drain()
    [booked] = standins.sectigo.orders.values()
    kept = await find(jobs.database, order_id)
    assert kept is not None
    leaf = x509.load_pem_x509_certificate(booked.certificate.encode())
    assert kept.serial == f"{booked.serial:x}"
    assert kept.fingerprint == leaf.fingerprint(hashes.SHA256()).hex()
    assert (kept.not_before, kept.not_after) == (leaf.not_valid_before_utc, leaf.not_valid_after_utc)
    assert kept.chain == booked.certificate + standins.sectigo.intermediate.pem
    assert (await find_order(order_id)).certificate == kept


@pytest.mark.parametrize(
    ("csr", "message"),
    [
        ("", "must be a certificate signing request in PEM"),
        ("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----", "must be a certificate"),
        ("x" * 40_000, "at most 32,768 characters"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(csr: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        read_request(csr)


def test_a_weak_or_nameless_request_is_refused() -> None:
    def csr(bits: int, *names: str) -> str:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
        key = rsa.generate_private_key(65537, bits)
        signed = x509.CertificateSigningRequestBuilder(subject).sign(key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode()

    with pytest.raises(ArgumentError, match="at least 2048 bits, got 1024"):
        read_request(csr(1024, "shop.example"))
    for names in ((), ("<script>alert(1)</script>",), ("Shop Inc.",)):
        with pytest.raises(ArgumentError, match="at least one DNS name"):
            read_request(csr(2048, *names))
    with pytest.raises(ArgumentError, match="is no DNS name"):
        read_request(new_request("shop.example", "<b>.example"))
    assert read_request(new_request("*.Shop.example", "xn--bcher-kva.example")).names == (
        "*.shop.example",
        "xn--bcher-kva.example",
    )
