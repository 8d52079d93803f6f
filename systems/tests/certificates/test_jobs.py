"""A job is retried while attempts remain, waits for people without a worker, and leaves an audit trail."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509

from perdure import WorkerSettings
from perdure.testing import Sandbox
from perdure_systems.certificates import loops
from perdure_systems.certificates.jobs import app, database
from perdure_systems.certificates.records import BY_ID, Certificate
from perdure_systems.certificates.signing import make_csr

SHOP = {"common_name": "shop.example", "owner": "ada"}


async def requested(client: httpx.AsyncClient, **fields: Any) -> tuple[str, str]:
    """A new certificate; its id and that of its job."""
    answer = await client.post("/api/v1/certificates", json={**SHOP, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["job_id"]


async def job(client: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_certificate_is_signed_and_can_be_verified(box: Sandbox, client: httpx.AsyncClient) -> None:
    certificate, job_id = await requested(client, sans=["www.shop.example"])
    assert (await box.drain()).succeeded == 1

    stored = await database.one(Certificate, BY_ID, {"id": certificate})
    assert stored is not None
    assert stored.pem is not None
    leaf, root = x509.load_pem_x509_certificates(stored.pem.encode())
    leaf.verify_directly_issued_by(root)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["shop.example", "www.shop.example"]
    assert stored.status == "active"
    assert (await job(client, job_id))["status"] == "Completed"


async def test_a14_a16_a_failed_job_is_retried_until_its_attempts_are_used_up(
    box: Sandbox, client: httpx.AsyncClient, authority: Path
) -> None:
    """The original never counted attempts: it would still be trying."""
    authority.write_text("a file where the folder should be")
    _, job_id = await requested(client)

    seen = []
    for _ in range(6):
        await box.drain()
        shown = await job(client, job_id)
        seen.append((shown["status"], shown["attempts"], shown["next_retry_at"] is not None))
        box.travel("5m")

    assert seen[:3] == [("Failed", 1, True), ("Failed", 2, True), ("Failed", 3, False)]
    assert seen[3:] == [("Failed", 3, False)] * 3  # at its limit: skipped, for good
    assert len(shown["failed_attempts"]) == 3


async def test_a14_each_retry_is_in_the_audit_trail(box: Sandbox, client: httpx.AsyncClient, authority: Path) -> None:
    authority.write_text("")
    _, job_id = await requested(client)
    for _ in range(3):
        await box.drain()
        box.travel("5m")

    audit = (await job(client, job_id))["audit"]
    retries = [entry for entry in reversed(audit) if entry["action"] == "job_retry"]
    assert [(one["actor"], one["actor_type"]) for one in retries] == [("system", "system")] * 2
    assert [one["details"] for one in retries] == [
        {"old_status": "running", "new_status": "retrying", "attempts": 1, "max_attempts": 3},
        {"old_status": "running", "new_status": "retrying", "attempts": 2, "max_attempts": 3},
    ]
    assert [one["action"] for one in audit if one["action"] == "job_death"] == ["job_death"]


async def test_a14_without_the_audit_trail_retries_work_all_the_same(engine_url: str, authority: Path) -> None:
    authority.write_text("")
    silent = WorkerSettings(audit=())
    async with Sandbox(app, url=engine_url, periodic=False, settings=silent) as box:
        async with database.transaction() as session:
            handle = await app.job_named("certificates.issue").using(connection=session.connection).enqueue("gone")
        authority.unlink()
        assert (await box.drain()).dead == 1  # a deleted certificate: no retry would help
        desk = await app.desk("test")
        assert [one.action for one in (await desk.audit(job=str(handle.id))).entries] == []
        await database.close()


async def test_a15_the_retry_loop_brings_failed_jobs_back_at_once(
    box: Sandbox, client: httpx.AsyncClient, authority: Path
) -> None:
    authority.write_text("")
    _, job_id = await requested(client)
    await box.drain()
    assert (await job(client, job_id))["status"] == "Failed"

    authority.unlink()
    assert await loops.retry_failed_jobs() == "1 jobs retried"
    await box.drain()
    assert (await job(client, job_id))["status"] == "Completed"
    assert await loops.retry_failed_jobs() == "0 jobs retried"


@pytest.mark.parametrize(
    ("fields", "status", "hours"),
    [({"needs_csr": True}, "AwaitingCSR", 24), ({"needs_approval": True}, "AwaitingApproval", 168)],
)
async def test_a16_what_waits_for_a_person_expires(
    box: Sandbox, client: httpx.AsyncClient, fields: dict[str, bool], status: str, hours: int
) -> None:
    certificate, job_id = await requested(client, **fields)
    await box.drain()
    shown = await job(client, job_id)
    assert shown["status"] == status
    assert [one["id"] for one in (await client.get(f"/api/v1/jobs?status={status}")).json()["jobs"]] == [job_id]

    box.travel(timedelta(hours=hours) - timedelta(seconds=1))
    await box.drain()
    assert (await job(client, job_id))["status"] == status

    box.travel("2s")
    await box.drain()
    ended = await job(client, job_id)
    assert (ended["status"], ended["next_retry_at"]) == ("Failed", None)
    assert f"{status} expired: no {'CSR' if hours == 24 else 'answer'} came within {hours} hours" in ended["last_error"]

    assert await loops.reap() == "1 requests failed"
    stored = await database.one(Certificate, BY_ID, {"id": certificate})
    assert stored is not None
    assert stored.status == "failed"


async def test_a_csr_and_an_approval_let_the_job_go_on(box: Sandbox, client: httpx.AsyncClient) -> None:
    certificate, job_id = await requested(client, needs_csr=True, needs_approval=True)
    await box.drain()
    bad = await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": "nonsense"})
    assert (bad.status_code, bad.json()["field"]) == (400, "csr")

    csr, _ = make_csr("shop.example")
    assert (await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": csr})).status_code == 202
    await box.drain()
    assert (await job(client, job_id))["status"] == "AwaitingApproval"
    late = await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": csr})
    assert late.status_code == 409
    assert "AwaitingApproval: it waits for no CSR" in late.json()["detail"]

    assert (await client.post(f"/api/v1/jobs/{job_id}/approve", json={"by": "grace"})).status_code == 200
    await box.drain()
    assert (await job(client, job_id))["status"] == "Completed"
    stored = await database.one(Certificate, BY_ID, {"id": certificate})
    assert stored is not None
    assert stored.pem is not None
    leaf = x509.load_pem_x509_certificates(stored.pem.encode())[0]
    assert leaf.public_key() == x509.load_pem_x509_csr(csr.encode()).public_key()


async def test_a_refused_job_fails_with_the_name_of_who_refused(box: Sandbox, client: httpx.AsyncClient) -> None:
    _, job_id = await requested(client, needs_approval=True)
    await box.drain()
    await client.post(f"/api/v1/jobs/{job_id}/reject", json={"by": "grace", "note": "not ours"})
    await box.drain()
    assert "refused by grace: not ours" in (await job(client, job_id))["last_error"]
    again = await client.post(f"/api/v1/jobs/{job_id}/approve", json={"by": "grace"})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"owner": "ada"}, "common_name"),
        ({"common_name": "", "owner": "ada"}, "common_name"),
        ({"common_name": "shop.example", "owner": "ada", "lifetime_hours": 0}, "lifetime_hours"),
        ({"common_name": "shop.example", "owner": "ada", "sans": ["bad name"]}, "sans[0]"),
        ({"common_name": "shop.example", "owner": "ada", "colour": 1}, "colour"),
    ],
)
async def test_bad_input_names_the_field_and_stores_nothing(
    client: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    answer = await client.post("/api/v1/certificates", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert (await client.get("/api/v1/certificates")).json() == {"certificates": []}
    assert (await client.get("/api/v1/jobs")).json()["jobs"] == []


async def test_a_name_that_is_taken_and_ids_that_are_unknown(client: httpx.AsyncClient) -> None:
    await requested(client)
    again = await client.post("/api/v1/certificates", json=SHOP)
    assert (again.status_code, again.json()["field"]) == (409, "common_name")
    unknown = "00000000-0000-7000-8000-000000000000"
    assert (await client.get(f"/api/v1/jobs/{unknown}")).status_code == 404
    assert (await client.post(f"/api/v1/jobs/{unknown}/approve")).status_code == 404
    assert (await client.get(f"/api/v1/jobs/{unknown}/approve")).status_code == 405
    assert (await client.get("/api/v1/jobs?status=Sleeping")).status_code == 400
