"""Identities."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from perdure.domain.jobs.ids import as_job_id, is_job_id, new_job_id, new_worker_id
from perdure.errors import ArgumentError


def test_ids_are_different_and_sort_by_their_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(1_000, 2_000))
    monkeypatch.setattr(time, "time_ns", lambda: next(moments) * 1_000_000)
    ids = [new_job_id() for _ in range(600)]  # more than are drawn at once
    assert len(set(ids)) == 600
    assert ids == sorted(ids)
    for place, job_id in enumerate(ids):
        uuid = UUID(job_id)
        assert (str(uuid), uuid.version, uuid.variant) == (job_id, 7, "specified in RFC 4122")
        assert uuid.int >> 80 == 1_000 + place


def test_a_uuid_in_any_form_is_an_id_and_nothing_else_is() -> None:
    job_id = new_job_id()
    for given in (job_id, job_id.upper(), f" {job_id} ", UUID(job_id)):
        assert is_job_id(given)
        assert as_job_id(given) == job_id
    for wrong in ("", "order-7", job_id[:-1], f"{job_id}0", f"{{{job_id}}}", job_id.replace("-", ""), None, 7):
        assert not is_job_id(wrong)
        with pytest.raises(ArgumentError, match=r"^job must be a UUID such as .*; ask ada$"):
            as_job_id(wrong, field="job", advice="; ask ada")


def test_a_worker_id_is_above_any_number_that_a_database_has_counted() -> None:
    assert all(2**40 <= new_worker_id() < 2**41 for _ in range(50))
