"""A job is retried while attempts remain, waits for people without a worker, and leaves an audit trail."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from systems.tests.certificates.programs import Api, certificate

from perdure import WorkerSettings
from perdure.testing import Sandbox
from perdure_systems.certificates import loops
from perdure_systems.certificates.jobs import app, database, issue
from perdure_systems.certificates.records import add_certificate
from perdure_systems.certificates.signing import make_csr
from perdure_systems.notifications.jobs import app as notifications_app


async def test_a14_a16_a_failed_job_is_pending_until_its_attempts_are_used_up(
    box: Sandbox, client: Api, authority: Path
) -> None:
    """The original never counted attempts: it would still be trying."""
    authority.write_text("a file where the folder should be")
    _, job_id = await client.requested()

    seen = []
    for _ in range(6):
        await box.drain()
        shown = await client.job(job_id)
        seen.append((shown["status"], shown["attempts"], shown["next_retry_at"] is not None))
        box.travel("5m")

    assert seen[:3] == [("Pending", 1, True), ("Pending", 2, True), ("Failed", 3, False)]
    assert seen[3:] == [("Failed", 3, False)] * 3  # at its limit: left alone, for good
    assert shown["max_attempts"] == 3
    assert len(shown["failed_attempts"]) == 3


async def test_a14_max_attempts_is_a_setting(
    box: Sandbox, client: Api, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTCTL_JOB_MAX_ATTEMPTS", "2")
    authority.write_text("")
    _, job_id = await client.requested()
    assert (await box.drain(travel="1h")).attempts == 2
    assert (await client.job(job_id))["status"] == "Failed"


async def test_a14_each_retry_is_in_the_audit_trail(box: Sandbox, client: Api, authority: Path) -> None:
    authority.write_text("")
    _, job_id = await client.requested()
    for _ in range(3):
        await box.drain()
        box.travel("5m")

    audit = (await client.job(job_id))["audit"]
    retries = [entry for entry in reversed(audit) if entry["action"] == "job_retry"]
    assert [(one["actor"], one["actor_type"]) for one in retries] == [("system", "system")] * 2
    assert [one["details"] for one in retries] == [
        {"old_status": "Running", "new_status": "Pending", "attempts": 1, "max_attempts": 3},
        {"old_status": "Running", "new_status": "Pending", "attempts": 2, "max_attempts": 3},
    ]
    [death] = [one for one in audit if one["action"] == "job_death"]
    assert death["details"] == {"old_status": "Running", "new_status": "Failed", "attempts": 3, "max_attempts": 3}


async def test_a14_without_the_audit_trail_retries_work_all_the_same(engine_url: str, authority: Path) -> None:
    authority.write_text("")
    silent = WorkerSettings(audit=())
    async with (
        Sandbox(app, url=engine_url, periodic=False, settings=silent) as box,
        Sandbox(notifications_app, url=engine_url, periodic=False),
    ):
        async with database.transaction() as session:
            await add_certificate(session, certificate(box.now))
            handle = await issue.using(connection=session.connection).enqueue("c1")
        seen = []
        for _ in range(4):
            drained = await box.drain()
            seen.append((drained.retrying, drained.dead))
            box.travel("5m")
        assert seen == [(1, 0), (1, 0), (0, 1), (0, 0)]
        assert (await handle.view()).failures == 3
        assert (await (await app.desk("test")).audit(job=str(handle.id))).entries == ()
        await database.close()


async def test_a15_a16_the_retry_loop_brings_failed_jobs_back_and_skips_those_at_their_limit(
    box: Sandbox, client: Api, authority: Path
) -> None:
    authority.write_text("")
    _, job_id = await client.requested()
    _, spent = await client.requested(common_name="spent.example")
    for retried in (2, 2, 0):  # their third attempt is their last
        await box.drain()
        assert await loops.retry_failed_jobs() == f"{retried} jobs retried"
    assert (await client.job(spent))["status"] == "Failed"

    _, fresh = await client.requested(common_name="fresh.example")
    await box.drain()
    assert (await client.job(fresh))["attempts"] == 1
    authority.unlink()
    assert await loops.retry_failed_jobs() == "1 jobs retried"  # the fresh one; the others are at their limit
    await box.drain()
    assert (await client.job(fresh))["status"] == "Completed"
    assert [(await client.job(one))["status"] for one in (job_id, spent)] == ["Failed", "Failed"]
    assert await loops.retry_failed_jobs() == "0 jobs retried"


@pytest.mark.parametrize(
    ("fields", "status", "hours"),
    [({"needs_csr": True}, "AwaitingCSR", 24), ({"needs_approval": True}, "AwaitingApproval", 168)],
)
async def test_a16_what_waits_for_a_person_expires(
    box: Sandbox, client: Api, fields: dict[str, bool], status: str, hours: int
) -> None:
    certificate, job_id = await client.requested(**fields)
    await box.drain()
    shown = await client.job(job_id)
    assert shown["status"] == status
    assert [one["id"] for one in (await client.get(f"/api/v1/jobs?status={status}")).json()["jobs"]] == [job_id]

    box.travel(timedelta(hours=hours) - timedelta(seconds=1))
    await box.drain()
    assert (await client.job(job_id))["status"] == status

    box.travel("2s")
    await box.drain()
    ended = await client.job(job_id)
    assert (ended["status"], ended["next_retry_at"]) == ("Failed", None)
    assert f"{status} expired: no {'CSR' if hours == 24 else 'answer'} came within {hours} hours" in ended["last_error"]

    assert await loops.reap() == "1 jobs ended without a certificate"
    assert (await client.certificate(certificate))["status"] == "failed"


async def test_a16_the_times_of_waiting_are_settings(
    box: Sandbox, client: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTCTL_JOB_AWAITING_CSR_TIMEOUT", "1h")
    _, job_id = await client.requested(needs_csr=True)
    await box.drain()
    box.travel("61m")
    await box.drain()
    assert "no CSR came within 1 hours" in (await client.job(job_id))["last_error"]


async def test_a_csr_and_an_approval_let_the_job_go_on(box: Sandbox, client: Api) -> None:
    certificate, job_id = await client.requested(needs_csr=True, needs_approval=True, requested_by="edge-1")
    await box.drain()
    bad = await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": "nonsense"})
    assert (bad.status_code, bad.json()["field"]) == (400, "csr")
    early = await client.post(f"/api/v1/jobs/{job_id}/approve")
    assert (early.status_code, early.json()["detail"]) == (
        409,
        f"job {job_id} is AwaitingCSR: it waits for no approval",
    )

    csr, _ = make_csr("shop.example")
    assert (await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": csr})).status_code == 202
    await box.drain()
    waiting = await client.job(job_id)
    assert (waiting["status"], waiting["requested_by"], waiting["because"]) == ("AwaitingApproval", "edge-1", "new")
    late = await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": csr})
    assert late.status_code == 409
    assert "AwaitingApproval: it waits for no CSR" in late.json()["detail"]

    assert (
        await client.post(f"/api/v1/jobs/{job_id}/approve", json={"by": "grace", "note": "known host"})
    ).status_code == 200
    await box.drain()
    done = await client.job(job_id)
    assert done["status"] == "Completed"
    assert [(one["actor"], one["action"], one["details"]) for one in done["audit"]] == [
        ("grace", "approve", {"note": "known host"}),
        ("grace", "answer", {"question": "issue", "after": {"approved": True, "note": "known host"}}),
    ]
    shown = await client.certificate(certificate)
    leaf = x509.load_pem_x509_certificate(shown["chain"].encode())
    assert leaf.public_key() == x509.load_pem_x509_csr(csr.encode()).public_key()
    assert shown["key_file"] is None  # the agent has it


async def test_a_refused_job_fails_with_the_name_of_who_refused_and_can_be_asked_again(
    box: Sandbox, client: Api
) -> None:
    certificate, job_id = await client.requested(needs_approval=True)
    await box.drain()
    await client.post(f"/api/v1/jobs/{job_id}/reject", json={"by": "grace", "note": "not ours"})
    await box.drain()
    shown = await client.job(job_id)
    assert "refused by grace: not ours" in shown["last_error"]
    assert shown["can_retry"] is False
    assert (await client.post(f"/api/v1/jobs/{job_id}/approve", json={"by": "grace"})).status_code == 409
    retry = await client.post(f"/api/v1/jobs/{job_id}/retry")  # it would find the same answer
    assert retry.status_code == 409
    assert f"POST /api/v1/certificates/{certificate}/renew" in retry.json()["detail"]

    renewed = await client.post(f"/api/v1/certificates/{certificate}/renew", json={"requested_by": "ada"})
    assert renewed.status_code == 202
    await box.drain()
    assert (await client.job(renewed.json()["job_id"]))["status"] == "AwaitingApproval"


async def test_a_failed_job_that_is_retried_keeps_its_approval(box: Sandbox, client: Api, authority: Path) -> None:
    authority.write_text("")
    csr, _ = make_csr("shop.example")
    _, job_id = await client.requested(needs_approval=True, needs_csr=True)
    await box.drain()
    await client.post(f"/api/v1/jobs/{job_id}/csr", json={"csr": csr})
    await box.drain()
    await client.post(f"/api/v1/jobs/{job_id}/approve")
    await box.drain(travel="1h")
    failed = await client.job(job_id)
    assert (failed["status"], failed["can_retry"]) == ("Failed", True)

    authority.unlink()
    assert (await client.post(f"/api/v1/jobs/{job_id}/retry")).status_code == 200
    await box.drain()
    assert (await client.job(job_id))["status"] == "Completed"
    assert (await client.post(f"/api/v1/jobs/{job_id}/retry")).status_code == 409


async def test_a_job_that_waits_for_its_next_attempt_can_be_retried_at_once(
    box: Sandbox, client: Api, authority: Path
) -> None:
    authority.write_text("")
    _, job_id = await client.requested()
    await box.drain()
    authority.unlink()
    await box.drain()
    assert (await client.job(job_id))["can_retry"] is True
    assert (await client.post(f"/api/v1/jobs/{job_id}/retry")).status_code == 200
    await box.drain()
    assert (await client.job(job_id))["status"] == "Completed"
