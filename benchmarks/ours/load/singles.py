"""How fast one caller enqueues job after job, against single commits of the bare database.

Both are taken in turns, a few hundred at a time, and all the time that each took counts: a machine whose mood changes
favours neither.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks import raw
from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App

TURNS = 20
EACH = 400


async def _noop(index: int, sent_ns: int) -> None:
    del index, sent_ns


def share_of_raw(engine: Engine, server: str) -> float:
    """Enqueues in a second, as a share of the commits in a second of one connection to the bare database."""
    with _bare(engine, server) as commit, new_database(engine, server) as database:
        bare, ours = asyncio.run(_in_turns(address(engine, database), commit))
    return bare / ours


async def _in_turns(url: str, commit: Callable[[int], None]) -> tuple[float, float]:
    """The seconds that both took for the same number."""
    bare = ours = 0.0
    async with App(url) as app:
        noop = app.job(_noop)
        await noop.enqueue(0, 0)
        for _ in range(TURNS):
            begun = time.perf_counter()
            commit(EACH)
            between = time.perf_counter()
            for index in range(EACH):
                await noop.enqueue(index, 0)
            ours += time.perf_counter() - between
            bare += between - begun
    return bare, ours


@contextmanager
def _bare(engine: Engine, server: str) -> Iterator[Callable[[int], None]]:
    if engine is Engine.POSTGRES:
        with raw.bare_postgres(server) as session:
            yield partial(raw.commit_on_postgres, session)
    else:
        with raw.bare_sqlite(server) as file:
            yield partial(raw.commit_on_sqlite, file)
