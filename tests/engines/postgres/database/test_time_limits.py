"""Questions with a time limit: one round, and the limit ends with the question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.wire import Wire
from perdure.errors import StoreTimeout
from perdure.storage.time_limits import time_limit

LIMIT = "SELECT current_setting('statement_timeout')"


@pytest.fixture
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    pool = Pool(Server(postgres_url), prepare=False)
    pool.open()
    await pool.rows("SELECT 1")
    try:
        yield pool
    finally:
        await pool.close()


async def test_a_question_with_a_time_limit_takes_one_round(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 0
    send = Wire._start_sending

    def counted(wire: Wire) -> None:
        nonlocal rounds
        rounds += 1
        send(wire)

    monkeypatch.setattr(Wire, "_start_sending", counted)
    with time_limit(timedelta(seconds=60)):
        assert await pool.rows("SELECT %(n)s::int", {"n": 7}) == [(7,)]
    assert rounds == 1


async def test_the_limit_of_a_question_ends_with_it(pool: Pool) -> None:
    with time_limit(timedelta(seconds=60)):
        [[inside]] = await pool.rows(LIMIT)
    [[afterwards]] = await pool.rows(LIMIT)
    assert (inside != "0", afterwards) == (True, "0")


async def test_a_question_that_lasts_too_long_is_ended_by_the_server_and_spares_the_session(pool: Pool) -> None:
    [[before]] = await pool.rows("SELECT pg_backend_pid()")
    with time_limit(timedelta(milliseconds=50)), pytest.raises(StoreTimeout, match="time limit"):
        await pool.rows("SELECT pg_sleep(60)")
    assert await pool.rows("SELECT pg_backend_pid()") == [(before,)]
