"""G1 and G2 when an answer of the server is lost: what was asked for may or may not have happened.

A bad line cuts connections at every moment of a conversation: before a request is passed on, and after it was carried
out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.crash.conftest import House, Tell
from tests.crash.harness.bad_line import BadLine, Cut
from tests.crash.harness.contents import read_contents, unfinished
from tests.support.builders.jobs import numbered_id
from tests.support.databases.behind import query
from tests.support.waiting import until

from perdure import App, Context, Handle, Intake, Job, Queue, Unique, WorkerSettings

LONGEST_TALK = 40  # requests that one enqueue takes, connecting included
QUEUE = "bumpy"
Enqueue = Callable[[App, range], Awaitable[list[Handle[int]]]]


@pytest.fixture
async def line(postgres_house: House, tmp_path: Path) -> AsyncIterator[BadLine]:
    async with App(postgres_house.url):
        pass  # the schema is there
    async with BadLine(postgres_house.url, tmp_path) as line:
        yield line


def declared(app: App) -> Job[[int], int]:
    @app.job(name="one", unique=Unique())
    async def one(number: int) -> int:
        return number

    return one


async def one_by_one(app: App, numbers: range) -> list[Handle[int]]:
    """One statement that commits by itself."""
    return [await declared(app).using(id=numbered_id(numbers[0])).enqueue(numbers[0])]


async def in_a_batch(app: App, numbers: range) -> list[Handle[int]]:
    """Several statements, and then COMMIT."""
    job = declared(app)
    return await app.enqueue_many(job.using(id=numbered_id(number)).call(number) for number in numbers)


@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("enqueue", [one_by_one, in_a_batch])
async def test_g1_an_enqueue_in_doubt_is_tried_again_and_is_one_job(
    postgres_house: House, line: BadLine, tell: Tell, how: Cut, enqueue: Enqueue
) -> None:
    """Whichever request of the conversation is lost."""
    intakes: Counter[str] = Counter()
    for moment in range(1, LONGEST_TALK):
        async with App(line.url, migrate=False) as app:
            cut = line.cut_at(moment, how)
            handles = await enqueue(app, range(moment * 10, moment * 10 + 3))
            line.mend()
        assert [stored(postgres_house.url, handle) for handle in handles] == [(1, 1)] * len(handles)
        intakes.update(handle.intake.value for handle in handles)
        if not cut():
            break
    assert moment < LONGEST_TALK - 1, "the end of the conversation was not reached"
    tell(f"PostgreSQL: enqueue {enqueue.__name__}, each of {moment - 1} requests {how}: {dict(intakes)}")
    assert (intakes[Intake.EXISTING] > 0) is (how is Cut.AFTER)  # a commit carried out is found when tried again


class Losing:
    """Loses the answer to every fifth claim, and to every fifth acknowledgement, known by what they speak of."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def __call__(self, _number: int, request: bytes) -> Cut | None:
        for word in (QUEUE.encode(), numbered_id(0)[:-4].encode()):
            if word in request:
                self._seen[word] += 1
                return Cut.AFTER if self._seen[word] % 5 == 0 else None
        return None


def stored(url: str, handle: Handle[int]) -> tuple[int, int]:
    """How often a job is recorded, and how often it is ready."""
    [counts] = query(
        url,
        f"SELECT (SELECT count(*) FROM {{job}} WHERE id = '{handle.id}'),"
        f" (SELECT count(*) FROM {{ready}} WHERE job_id = '{handle.id}')",
    )
    return counts[0], counts[1]


async def test_g2_a_worker_whose_answers_get_lost_runs_each_job_once(
    postgres_house: House, line: BadLine, tell: Tell
) -> None:
    """A claim in doubt is found again, and an acknowledgement in doubt is written once."""
    app = App(line.url, migrate=False, enqueue_patience="20s")
    starts: Counter[str] = Counter()

    @app.job
    async def note(ctx: Context) -> dict[str, int]:
        starts[ctx.job_id] += 1
        await asyncio.sleep(0)
        return {"token": ctx.token}

    async with app:
        worker = await app.worker(WorkerSettings(queues=(Queue(QUEUE),), concurrency=3))
        running = asyncio.create_task(worker.run())
        await worker.opened.wait()
        handles = await app.enqueue_many(
            note.using(queue=QUEUE, id=numbered_id(number)).call() for number in range(100)
        )
        line.choose = Losing()
        await until(lambda: unfinished(postgres_house.url) == 0)
        line.mend()
        worker.stop()
        await asyncio.wait_for(running, 30)
        unsure = worker._parts.attempts.acknowledger.unsure
    tell(f"PostgreSQL, a worker behind a bad line: {line.cuts.total()} answers lost, {unsure} writes in doubt repeated")
    assert starts == Counter(handle.id for handle in handles)
    assert {standing.crashes for standing in read_contents(postgres_house.url).standings} == {0}
    assert unsure > 0
