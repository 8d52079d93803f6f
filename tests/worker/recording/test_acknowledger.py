"""The end of an attempt is recorded in the end, whatever the database says to it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from tests.support.bench import Bench, Ledger, a_claim
from tests.support.waiting import until

from perdure import App, JobState
from perdure.domain.jobs.transition import Transition, succeeded
from perdure.domain.operate.audit import Audited
from perdure.errors import ArgumentError, StoreError
from perdure.events import JobDied, RecordRefused
from perdure.storage.records import Acknowledged


class Moods:
    """Refuses what the test says, so many times."""

    def __init__(self, error: Exception, times: int, result: str | None = None) -> None:
        self._error = error
        self._times = times
        self._result = result

    def __call__(self, transitions: Sequence[Transition]) -> None:
        if self._times and any(self._result in {None, move.result} for move in transitions):
            self._times -= 1
            raise self._error


def bench_with(moods: Moods) -> tuple[Bench, Ledger]:
    ledger = Ledger(moods)
    return Bench(App("sqlite:///unused.db"), ledger), ledger


async def test_a_record_is_tried_again_for_as_long_as_the_database_fails() -> None:
    for error in (StoreError("prepared statement does not exist"), RuntimeError("odd")):
        bench, ledger = bench_with(Moods(error, 20))
        bench.acknowledger.add(succeeded(a_claim("plain"), None, ()))
        await asyncio.wait_for(bench.acknowledger.drain(), 10)
        assert [move.to for move in ledger.written.values()] == [JobState.SUCCEEDED]


async def test_a_record_that_fails_again_and_again_delays_no_other_record() -> None:
    bench, ledger = bench_with(Moods(StoreError("odd"), 10_000_000, "bad"))
    claims = [a_claim("plain") for _ in range(5)]
    for number, claim in enumerate(claims):
        bench.acknowledger.add(succeeded(claim, "bad" if number == 2 else None, ()))
    await until(lambda: len(ledger.written) == 4)
    assert claims[2].job_id not in ledger.written
    assert bench.acknowledger._task is not None
    bench.acknowledger.give_up()
    bench.acknowledger._task.cancel()


class SlowLedger(Ledger):
    """Takes its time over the first record."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def acknowledge(self, transitions: Sequence[Transition], audit: Collection[Audited] = ()) -> Acknowledged:
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.sleep(60)
        return await super().acknowledge(transitions, audit)


async def test_records_outlive_the_end_of_the_task_that_writes_them() -> None:
    """A program that ends cancels all its tasks: before they begin, and in the middle."""
    ledger = SlowLedger()
    bench = Bench(App("sqlite:///unused.db"), ledger)
    bench.acknowledger.add(succeeded(a_claim("first"), None, ()))
    for begun in (False, True):
        if begun:
            await ledger.asked.wait()
        bench.acknowledger.add(succeeded(a_claim("other"), None, ()))
        assert bench.acknowledger._task is not None
        bench.acknowledger._task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait_for(bench.acknowledger.drain(), 10)
    assert (len(ledger.written), bench.acknowledger.backlog) == (3, 0)


async def test_a_record_whose_content_is_refused_makes_a_dead_letter_with_the_cause() -> None:
    bench, ledger = bench_with(Moods(ArgumentError("text", "must not contain NUL"), 2, "bad"))
    claims = [a_claim("plain") for _ in range(3)]
    for number, claim in enumerate(claims):
        bench.acknowledger.add(succeeded(claim, "bad" if number == 1 else None, ()))
    await asyncio.wait_for(bench.acknowledger.drain(), 10)
    assert [ledger.written[claim.job_id].to for claim in claims] == [
        JobState.SUCCEEDED,
        JobState.DEAD,
        JobState.SUCCEEDED,
    ]
    failure = ledger.written[claims[1].job_id].failure
    assert failure is not None
    assert (failure.error_type, "must not contain NUL" in failure.message) == ("RecordRefused", True)
    assert [type(event) for event in bench.events] == [RecordRefused, JobDied]
