"""What a long history costs a budget: passing its gate with a million spends of a month behind it, against with none.

`python -m benchmarks.ours.load.budgets [--engine sqlite|postgres]` prints the figures of each engine.

Each job asks by itself, and says what it has spent; that is summed before the next one asks, as upkeep does it. Jobs of
the two databases take turns, so that the machine's mood counts for both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Final

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, run_sql, settle
from benchmarks.ours.addresses import address
from perdure import App, Budget
from perdure.domain.gate import BudgetCheck, GateRequest
from perdure.domain.jobs.job import Claim
from perdure.domain.worker import NewWorker
from perdure.lifecycle.process.identity import this_process
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.storage.port import Store
from perdure.storage.records import Wanted

SPENDS = 1_000_000
ROUNDS = 500
BATCH = 1_000
BUDGET: Final = Budget("ai", daily=1e6, weekly=1e7, monthly=1e8, estimate=0.5)
CHECK: Final = BudgetCheck(BUDGET.name, BUDGET.estimate_for({}), BUDGET.limits)
_POSTGRES = """
    INSERT INTO perdure.spend (name, at, amount, job_id, is_estimate)
    SELECT 'ai', now() - i * (interval '30 days' / {0}), 0.25, gen_random_uuid(), false
    FROM generate_series({0}, 1, -1) i
"""
_SQLITE = """
    WITH RECURSIVE n (i) AS (SELECT {0} UNION ALL SELECT i - 1 FROM n WHERE i > 1)
    INSERT INTO perdure_spend (name, at, amount, job_id, is_estimate)
    SELECT 'ai', unixepoch() * 1000000 - i * (30 * 86400000000 / {0}), 0.25, lower(hex(randomblob(16))), 0 FROM n
"""


async def _noop() -> None: ...


def budget_cost(engine: Engine, server: str, *, spends: int = SPENDS) -> dict[str, float]:
    """The median milliseconds of a gate without and with a history, and their ratio.

    And of one while nothing of that history is summed yet, as it is after an upgrade; and of summing a batch of it.
    """
    with new_database(engine, server) as empty, new_database(engine, server) as full:
        unsummed, summing = asyncio.run(_prepare(engine, full, spends))
        settle(engine, full)
        without, beside = asyncio.run(_gates(address(engine, empty), address(engine, full)))
        ratio = beside / without
        return {"without": without, "with": beside, "ratio": ratio, "unsummed": unsummed, "summing": summing}


async def _prepare(engine: Engine, database: str, spends: int) -> tuple[float, float]:
    """Write a history and sum it; what a gate costs before that, and each batch of it."""
    async with App(address(engine, database)) as app:
        store = await app.store()
        _write_history(engine, database, spends)
        unsummed = [await _gate(store, claim) for claim in await _claims(app, store, 10)]
        times = list[float]()
        while True:
            begun = time.perf_counter()
            summed = await store.sum_spends(BATCH)
            if not summed:
                return statistics.median(unsummed), statistics.median(times)
            times.append((time.perf_counter() - begun) * 1_000)


async def _gates(empty: str, full: str) -> list[float]:
    async with App(empty) as one, App(full) as other:
        stores = [await app.store() for app in (one, other)]
        claims = [await _claims(app, store, ROUNDS) for app, store in zip((one, other), stores, strict=True)]
        times = [list[float](), list[float]()]
        for pair in zip(*claims, strict=True):
            for store, claim, taken in zip(stores, pair, times, strict=True):
                taken.append(await _gate(store, claim))
                await store.sum_spends(BATCH)
        return [statistics.median(taken) for taken in times]


async def _gate(store: Store, claim: Claim) -> float:
    """Let a job pass, and say what it has spent; what the first took."""
    requests = [GateRequest(claim=claim, budgets=(CHECK,))]
    begun = time.perf_counter()
    answers = await store.pass_gates(requests, gatekeeper(requests))
    taken = (time.perf_counter() - begun) * 1_000
    assert answers == [None]
    assert await store.spend(claim, BUDGET.name, 0.25)
    return taken


async def _claims(app: App, store: Store, number: int) -> list[Claim]:
    noop = app.job(_noop)
    await app.enqueue_many(noop.call() for _ in range(number))
    worker = NewWorker(name="bench", process=this_process(), queues=("default",), concurrency=1, version="")
    claims = await store.claim(await store.register(worker), [Wanted("default", number)])
    assert len(claims) == number
    return claims


def _write_history(engine: Engine, database: str, spends: int) -> None:
    if engine is Engine.POSTGRES:
        run_sql(database, _POSTGRES.format(spends))
        return
    import apsw  # noqa: PLC0415 - only for SQLite

    connection = apsw.Connection(database)
    connection.execute(_SQLITE.format(spends))
    connection.close()


def main() -> None:
    """Measure each engine once, and print."""
    from benchmarks.ours.__main__ import server_for  # noqa: PLC0415 - the whole harness, for one helper of it

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server:
                figures = budget_cost(engine, server)
            print(engine, ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
