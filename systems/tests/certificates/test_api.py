"""Certificates over HTTP: request, read, download, renew, delete; and what bad input is answered with."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import verification
from systems.tests.certificates.programs import SHOP, Api

from perdure import JobFilter
from perdure.testing import Sandbox
from perdure_systems.certificates import loops
from perdure_systems.certificates.jobs import app
from perdure_systems.certificates.signing import Authority, make_csr
from perdure_systems.notifications.jobs import KIND as NOTIFICATION
from perdure_systems.notifications.jobs import app as notifications_app

UNKNOWN = "00000000-0000-7000-8000-000000000000"


async def test_a_certificate_is_signed_and_a_client_can_verify_it(box: Sandbox, client: Api, tmp_path: Path) -> None:
    certificate, job_id = await client.requested(sans=["www.shop.example", "shop.example"])
    early = await client.get(f"/api/v1/certificates/{certificate}/chain.pem")
    assert (early.status_code, early.json()["detail"]) == (
        404,
        "shop.example is requested: there is no certificate yet",
    )
    assert (await box.drain()).succeeded == 1

    download = await client.get(f"/api/v1/certificates/{certificate}/chain.pem")
    assert download.headers["content-type"] == "application/x-pem-file"
    assert download.headers["content-disposition"] == 'attachment; filename="shop.example.pem"'
    leaf, root = x509.load_pem_x509_certificates(download.content)
    for name in ("shop.example", "www.shop.example"):
        verifier = verification.PolicyBuilder().store(verification.Store([root])).time(box.now)
        verifier.build_server_verifier(x509.DNSName(name)).verify(leaf, [])
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["shop.example", "www.shop.example"]

    shown = await client.certificate(certificate)
    assert (shown["status"], shown["chain"], shown["job_id"]) == ("active", download.text, job_id)
    key_file = Path(shown["key_file"])
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    assert key.public_key() == leaf.public_key()
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert (await client.job(job_id))["status"] == "Completed"


async def test_servers_that_make_the_root_at_the_same_time_have_one_root(authority: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    csr, _ = make_csr("a.example")
    signing = [
        asyncio.to_thread(Authority(authority).sign, csr, ["a.example"], timedelta(hours=1), now) for _ in range(8)
    ]
    chains = [signed.chain for signed in await asyncio.gather(*signing)]
    for chain in chains:
        leaf, root = x509.load_pem_x509_certificates(chain.encode())
        leaf.verify_directly_issued_by(root)
    assert len({chain.rpartition("-----BEGIN")[2] for chain in chains}) == 1


async def test_renewal_by_hand_makes_one_job_and_the_old_certificate_stays_until_the_new_one_is_there(
    box: Sandbox, client: Api, authority: Path
) -> None:
    certificate, _ = await client.requested()
    await box.drain()
    serial = (await client.certificate(certificate))["serial"]

    renewed = await client.post(f"/api/v1/certificates/{certificate}/renew", json={"requested_by": "grace"})
    assert (renewed.status_code, renewed.json()["is_new"]) == (202, True)
    again = await client.post(f"/api/v1/certificates/{certificate}/renew")
    assert (again.status_code, again.json()["job_id"]) == (200, renewed.json()["job_id"])
    job = await client.job(renewed.json()["job_id"])
    assert (job["requested_by"], job["because"]) == ("grace", "renewed by hand")
    root = (authority / "root.pem").read_bytes()
    (authority / "root.pem").write_text("broken")
    await box.drain(travel="1h")
    shown = await client.certificate(certificate)
    assert (shown["status"], shown["serial"]) == ("active", serial)  # the old one is still valid

    (authority / "root.pem").write_bytes(root)
    await client.post(f"/api/v1/certificates/{certificate}/renew")
    await box.drain()
    assert (await client.certificate(certificate))["serial"] != serial


async def test_a_deleted_certificate_takes_its_job_with_it(box: Sandbox, client: Api) -> None:
    certificate, job_id = await client.requested(needs_approval=True)
    await box.drain()
    assert (await client.delete(f"/api/v1/certificates/{certificate}")).status_code == 204
    job = await client.job(job_id)
    assert job["status"] == "Cancelled"
    assert (await client.get(f"/api/v1/certificates/{certificate}")).status_code == 404
    assert (await client.delete(f"/api/v1/certificates/{certificate}")).status_code == 404
    await client.requested()  # the name is free again


async def test_a_job_whose_certificate_is_deleted_while_it_signs_fails_for_good(box: Sandbox, client: Api) -> None:
    certificate, job_id = await client.requested()
    await client.delete(f"/api/v1/certificates/{certificate}")
    await (await app.desk("test")).requeue(job_id)  # as if the cancel had come too late
    await box.drain()
    failed = await client.job(job_id)
    assert (failed["status"], failed["attempts"]) == ("Failed", 1)
    assert f"certificate {certificate} does not exist any more" in failed["last_error"]


async def test_the_owner_is_reported_once_when_a_job_fails_for_good(box: Sandbox, client: Api, authority: Path) -> None:
    authority.write_text("")
    certificate, job_id = await client.requested(owner="ada@example.com")
    await box.drain("certificates", travel="1h")
    told = await notifications_app.desk("test")
    for _ in range(2):
        await loops.reap()
        [message] = (await told.jobs(JobFilter(kind=NOTIFICATION))).jobs
    assert (await client.certificate(certificate))["status"] == "failed"
    sent = message.arguments or {}
    assert (sent["recipient"], sent["subject"]) == ("ada@example.com", "No certificate for shop.example")
    assert "NotADirectoryError" in sent["body"] or "FileExistsError" in sent["body"]

    await client.post(f"/api/v1/jobs/{job_id}/retry")  # a new life; if that fails as well, the owner is told again
    await box.drain("certificates", travel="1h")
    await loops.reap()
    assert (await told.count(JobFilter(kind=NOTIFICATION))).jobs == 2


async def test_a_name_that_is_too_long_for_a_common_name_is_in_the_alternative_names_only(authority: Path) -> None:
    name = f"{'a' * 60}.{'b' * 60}.example"
    signed = Authority(authority).sign(make_csr(name)[0], [name], timedelta(hours=1), datetime(2026, 1, 1, tzinfo=UTC))
    leaf = x509.load_pem_x509_certificate(signed.chain.encode())
    assert leaf.subject.rfc4514_string() == ""
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [name]


async def test_certificates_are_listed_by_name_and_status(box: Sandbox, client: Api) -> None:
    for name in ("b.example", "a.example", "c.example"):
        await client.requested(common_name=name)
    await box.drain()
    await client.requested(common_name="new.example")
    page = (await client.get("/api/v1/certificates?per_page=2&page=2")).json()
    assert [one["common_name"] for one in page["certificates"]] == ["c.example", "new.example"]
    active = (await client.get("/api/v1/certificates?status=active")).json()["certificates"]
    assert [one["common_name"] for one in active] == ["a.example", "b.example", "c.example"]
    assert "pem" not in active[0]
    bad = await client.get("/api/v1/certificates?status=sleeping")
    assert (bad.status_code, bad.json()["field"]) == (400, "status")


BAD_BODIES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"owner": "ada"}, "common_name"),
    ({"common_name": "", "owner": "ada"}, "common_name"),
    ({"common_name": "a..example", "owner": "ada"}, "common_name"),
    ({"common_name": "<b>.example", "owner": "ada"}, "common_name"),
    ({"common_name": "shop.example", "owner": ""}, "owner"),
    ({"common_name": "shop.example", "owner": "ada", "lifetime_hours": 0}, "lifetime_hours"),
    ({"common_name": "shop.example", "owner": "ada", "sans": ["bad name"]}, "sans[0]"),
    ({"common_name": "shop.example", "owner": "ada", "colour": 1}, "colour"),
)


async def test_bad_input_names_the_field_and_stores_nothing(client: Api) -> None:
    for body, field in BAD_BODIES:
        answer = await client.post("/api/v1/certificates", json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert (await client.get("/api/v1/certificates")).json()["certificates"] == []
    assert (await client.get("/api/v1/jobs")).json()["jobs"] == []


async def test_a_weak_key_is_refused(box: Sandbox, client: Api) -> None:
    _, job_id = await client.requested(needs_csr=True)
    await box.drain()
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 - it is to be refused
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(weak, hashes.SHA256())
    text = csr.public_bytes(serialization.Encoding.PEM).decode()
    answer = await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": text})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "csr has an RSA key of 1024 bits: use at least 2048"
    assert (await client.job(job_id))["status"] == "AwaitingCSR"


async def test_a_name_that_is_taken_and_ids_that_are_unknown(client: Api) -> None:
    await client.requested()
    again = await client.post("/api/v1/certificates", json={**SHOP, "common_name": "SHOP.example"})
    assert (again.status_code, again.json()["field"]) == (409, "common_name")
    for path in (f"jobs/{UNKNOWN}", "certificates/none", "certificates/none/chain.pem"):
        assert (await client.get(f"/api/v1/{path}")).status_code == 404, path
    for path in (f"jobs/{UNKNOWN}/approve", f"jobs/{UNKNOWN}/retry", "certificates/none/renew"):
        assert (await client.post(f"/api/v1/{path}")).status_code == 404, path
        assert (await client.get(f"/api/v1/{path}")).status_code == 405, path
    assert (await client.get("/api/v1/jobs?status=Sleeping")).status_code == 400
    assert (await client.get("/api/v1/jobs/not-an-id")).status_code in {400, 404}
    bad = await client.post("/api/v1/agents/%3Cb%3E/heartbeat")
    assert (bad.status_code, bad.json()["field"]) == (400, "agent")


async def test_jobs_of_other_systems_are_not_shown(box: Sandbox, client: Api) -> None:
    await loops.send_digest()
    [message] = (await (await notifications_app.desk("test")).jobs(JobFilter(kind=NOTIFICATION))).jobs
    for action in ("retry", "cancel", "approve"):
        assert (await client.post(f"/api/v1/jobs/{message.id}/{action}")).status_code == 404
