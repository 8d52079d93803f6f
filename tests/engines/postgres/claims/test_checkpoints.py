"""Checkpoints at the same time share a commit, and an error is told to whom it concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.engines.postgres.conftest import Ask
from tests.support.builders.jobs import a_job, claim_some, employ

from perdure.domain.jobs.job import Claim
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import StoreError, StoreUnavailable

MANY = 600


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is sent to the server from now on."""
    sent: list[Any] = []
    genuine = Pool.rows

    async def rows(self: Pool, sql: str, params: Any = None) -> Sequence[tuple[Any, ...]]:
        sent.append(sql)
        return await genuine(self, sql, params)

    monkeypatch.setattr(Pool, "rows", rows)
    return sent


async def held(store: PostgresStore, jobs: int) -> list[Claim]:
    await store.insert([a_job() for _ in range(jobs)])
    return await claim_some(store, await employ(store), jobs)


async def test_many_at_once_share_a_commit_and_each_learns_its_own_fate(
    pg_store: PostgresStore, statements: list[Any], ask: Ask
) -> None:
    claims = await held(pg_store, MANY)
    lost = {number for number in range(MANY) if number % 3 == 0}
    statements.clear()
    answers = await asyncio.gather(
        *(
            pg_store.checkpoint(replace(claim, token=claim.token + (number in lost)), f'"{number}"')
            for number, claim in enumerate(claims)
        )
    )
    assert [number for number, kept in enumerate(answers) if not kept] == sorted(lost)
    assert len(statements) <= 3
    written = {cursor for (cursor,) in ask("SELECT cursor FROM job WHERE cursor IS NOT NULL")}
    assert written == {f'"{number}"' for number in range(MANY) if number not in lost}


async def test_of_two_for_one_job_the_later_one_counts(pg_store: PostgresStore, ask: Ask) -> None:
    [claim] = await held(pg_store, 1)
    assert await asyncio.gather(*(pg_store.checkpoint(claim, text) for text in ("1", "2", None, "4"))) == [True] * 4
    assert ask("SELECT cursor FROM job") == [("4",)]


@pytest.mark.parametrize(
    ("error", "failed"), [(StoreUnavailable("away"), {0, 1, 2}), (StoreError("no"), {1})], ids=["away", "one"]
)
async def test_an_error_is_raised_to_whom_it_concerns(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch, error: StoreError, failed: set[int]
) -> None:
    claims = await held(pg_store, 3)
    genuine = Pool.rows

    async def rows(self: Pool, sql: str, params: Any = None) -> Sequence[tuple[Any, ...]]:
        if isinstance(error, StoreUnavailable) or "bad" in params["cursors"]:
            raise error
        return await genuine(self, sql, params)

    monkeypatch.setattr(Pool, "rows", rows)
    answers = await asyncio.gather(
        *(pg_store.checkpoint(claim, '"bad"' if n == 1 else '"good"') for n, claim in enumerate(claims)),
        return_exceptions=True,
    )
    assert {n for n, answer in enumerate(answers) if answer is error} == failed
    assert all(answer is True for n, answer in enumerate(answers) if n not in failed)
