"""Leases under the id of a living worker that does not run their jobs: the database went back in time (G2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, cast

import pytest
from tests.support.bench import a_claim
from tests.support.builders.gates import costs, some, standing
from tests.support.builders.jobs import HOUR, enqueue
from tests.support.builders.trail import cancellations_by_system
from tests.support.databases.behind import query
from tests.support.databases.snapshot import Snapshot
from tests.support.waiting import until
from tests.support.working import Shift, at_work, seen

from perdure import App, Concurrency, Context, JobState
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, LeasesReturned
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged
from perdure.worker.claiming.fetcher import Fetcher
from perdure.worker.claiming.lost_claims import Lease, LostClaims
from perdure.worker.settings import WorkerSettings
from perdure.worker.surroundings import Surroundings

UNUSED = "sqlite:///unused.db"


async def test_g2_jobs_whose_ends_the_database_has_forgotten_run_again(real_time_store: Store, engine_url: str) -> None:
    """Twenty have ended and stand as running once more, in all the slots of their gate; the worker is not restarted."""
    app, go, ran = App(UNUSED), asyncio.Event(), Counter[str]()

    @app.job(gates=[Concurrency(20)])
    async def greet(ctx: Context, name: str) -> None:
        ran[ctx.job_id] += 1
        await go.wait()

    await some(real_time_store, 20)
    async with at_work(real_time_store, app, concurrency=20, heartbeat="200ms", lease="30s") as shift:
        await until(lambda: len(ran) == 20)
        before = await asyncio.to_thread(Snapshot, engine_url)
        go.set()
        await standing(real_time_store, succeeded=20)
        await asyncio.to_thread(before.put_back)
        await some(real_time_store, 5)
        done = await standing(real_time_store, succeeded=25)
    assert sorted(ran.values()) == [1] * 5 + [2] * 20
    assert costs(done) == {(0, 0)}
    told = [job_id for event in shift.told(LeasesReturned) for job_id in event.job_ids]
    assert Counter(told) == {job_id: 1 for job_id, times in ran.items() if times == 2}
    assert shift.worker.stale_writes == 0
    assert query(engine_url, "SELECT count(*) FROM {lease}") == [(0,)]


async def test_a_stray_lease_with_a_cancel_request_is_cancelled(real_time_store: Store, engine_url: str) -> None:
    app, go = App(UNUSED), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        await go.wait()

    job_id = await enqueue(real_time_store)
    async with at_work(real_time_store, app, heartbeat="200ms", lease="30s", audit="cancel"):
        await seen(real_time_store, job_id, JobState.RUNNING)
        before = await asyncio.to_thread(Snapshot, engine_url)
        go.set()
        await seen(real_time_store, job_id, JobState.SUCCEEDED)
        await asyncio.to_thread(before.put_back)
        query(engine_url, "UPDATE {lease} SET cancel_at = claimed_at, cancel_why = 'not needed'")
        view = await seen(real_time_store, job_id)
    assert (view.state, view.reason) == (JobState.CANCELLED, "cancelled: not needed")
    assert await cancellations_by_system(real_time_store) == [job_id]


class Looks:
    """A worker whose lost claims are looked for when the test says so."""

    def __init__(self, shift: Shift, store: Store) -> None:
        self._lost_claims = shift.worker._parts.lost_claims
        self._shift = shift
        self._store = store

    async def find_none(self, holding: int) -> None:
        """Look three times while the worker holds so many jobs; all of them are its own."""
        worker_id = self._lost_claims.worker_id
        assert worker_id is not None
        for _ in range(3):
            assert len(await self._store.leases(worker_id)) == holding
            assert await self._lost_claims.tick() == 0
            assert self._lost_claims._suspects == frozenset()
        assert self._shift.told(LeasesReturned) == []


async def test_what_runs_is_no_stray(real_time_store: Store) -> None:
    app, go = App(UNUSED), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        await go.wait()

    jobs = await some(real_time_store, 3)
    async with at_work(real_time_store, app, heartbeat="1m", lease="5m") as shift:
        await until(lambda: shift.worker.running == 3)
        await Looks(shift, real_time_store).find_none(3)
        go.set()
        for job_id in jobs:
            await seen(real_time_store, job_id, JobState.SUCCEEDED)


async def test_what_cannot_be_recorded_yet_is_no_stray(real_time_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    app, back, tried = App(UNUSED), asyncio.Event(), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        pass

    genuine = real_time_store.acknowledge

    async def away(transitions: Sequence[Transition], audit: Collection[Audited] = ()) -> Acknowledged:
        tried.set()
        if not back.is_set():
            raise StoreUnavailable("the database is away")
        return await genuine(transitions, audit)

    monkeypatch.setattr(real_time_store, "acknowledge", away)
    jobs = await some(real_time_store, 3)
    async with at_work(real_time_store, app, heartbeat="1m", lease="5m") as shift:
        await until(lambda: shift.worker._parts.attempts.acknowledger.backlog == 3)
        await tried.wait()
        await Looks(shift, real_time_store).find_none(3)
        back.set()
        for job_id in jobs:
            await seen(real_time_store, job_id, JobState.SUCCEEDED)


async def test_what_stands_before_a_gate_is_no_stray(real_time_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    app, opened = App(UNUSED), asyncio.Event()

    @app.job(gates=[Concurrency(2)])
    async def greet(name: str) -> None:
        pass

    genuine = real_time_store.pass_gates

    async def slow(*asked: Any) -> Any:
        await opened.wait()
        return await genuine(*asked)

    monkeypatch.setattr(real_time_store, "pass_gates", slow)
    jobs = await some(real_time_store, 3)
    async with at_work(real_time_store, app, heartbeat="1m", lease="5m") as shift:
        await until(lambda: shift.worker._parts.attempts.gatekeeper.waiting == 3)
        await Looks(shift, real_time_store).find_none(3)
        opened.set()
        for job_id in jobs:
            await seen(real_time_store, job_id, JobState.SUCCEEDED)


async def test_what_is_in_quarantine_is_no_stray(
    real_time_store: Store, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that have one crash left: one is let in, the other waits until it is written that it goes back."""
    app, go, back = App(UNUSED), asyncio.Event(), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        await go.wait()

    genuine = real_time_store.acknowledge

    async def slow(transitions: Sequence[Transition], audit: Collection[Audited] = ()) -> Acknowledged:
        await back.wait()
        return await genuine(transitions, audit)

    monkeypatch.setattr(real_time_store, "acknowledge", slow)
    jobs = await some(real_time_store, 2)
    query(engine_url, "UPDATE {ready} SET crashes = 2")
    async with at_work(real_time_store, app, heartbeat="1m", lease="5m") as shift:
        await until(lambda: shift.worker._parts.attempts.quarantine.claims)
        await Looks(shift, real_time_store).find_none(2)
        back.set()
        go.set()
        for job_id in jobs:
            await seen(real_time_store, job_id, JobState.SUCCEEDED)
        assert not shift.worker._parts.attempts.quarantine.claims


class Shelf:
    """A store that holds what the test says, and notes what comes back."""

    def __init__(self, *claims: Claim) -> None:
        self.held = list(claims)
        self.back: list[Transition] = []

    async def leases(self, _: WorkerId) -> list[Lease]:
        return [(claim.job_id, claim.token) for claim in self.held]

    async def claims_held(self, _: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        return [claim for claim in self.held if claim.job_id in job_ids]

    async def acknowledge(self, moves: Sequence[Transition], _: Collection[Audited]) -> Acknowledged:
        stale = tuple(move.claim for move in moves if move.claim not in self.held)
        self.back += [move for move in moves if move.claim in self.held]
        self.held = [claim for claim in self.held if claim not in [move.claim for move in moves]]
        return Acknowledged(len(moves) - len(stale), stale)

    def ring(self, queues: set[str]) -> None:
        assert queues == {"default"}


class Claims:
    """What a fetcher says of its claims."""

    def __init__(self) -> None:
        self.answered = 7
        self.is_in_doubt = False


class Room:
    """The parts that one look needs."""

    def __init__(self, *claims: Claim) -> None:
        self.shelf, self.claims, self.known = Shelf(*claims), Claims(), set[Lease]()
        self.events: list[Event] = []
        emitter = Emitter()
        emitter.subscribe(self.events.append)
        around = Surroundings(
            store=cast("Store", self.shelf),
            kinds={},
            settings=WorkerSettings(heartbeat=HOUR, lease=2 * HOUR),
            emitter=emitter,
            clock=SystemClock(),
        )
        fetcher = cast("Fetcher", self.claims)
        self.lost_claims = LostClaims("w", around, fetcher, known=lambda: self.known, on_back=lambda: None)
        self.lost_claims.worker_id = WorkerId(1)


async def test_a_stray_goes_back_at_the_second_look_at_no_cost() -> None:
    claim = a_claim("greet")
    room = Room(claim)
    assert [await room.lost_claims.tick(), room.shelf.back] == [0, []]
    assert await room.lost_claims.tick() == 1
    [move] = room.shelf.back
    assert (move.to, move.reason, move.failures, move.crashes) == (JobState.READY, Reason.RELEASED, 0, 0)
    assert room.events == [LeasesReturned("w", (claim.job_id,))]
    assert await room.lost_claims.tick() == 0


async def test_one_that_the_worker_has_heard_of_meanwhile_stays() -> None:
    claim = a_claim("greet")
    room = Room(claim)
    await room.lost_claims.tick()
    room.known.add((claim.job_id, claim.token))
    assert [await room.lost_claims.tick() for _ in range(3)] == [0, 0, 0]


async def test_one_that_may_be_on_its_way_is_waited_for() -> None:
    """A claim was under way at the first look; as long as it is not answered, nothing is known of what it took."""
    room = Room(a_claim("greet"))
    room.claims.is_in_doubt = True
    assert [await room.lost_claims.tick() for _ in range(5)] == [0, 0, 0, 0, 0]
    room.claims.answered += 1
    assert await room.lost_claims.tick() == 1


async def test_one_that_was_only_seen_while_the_worker_had_another_id_is_seen_again() -> None:
    room = Room(a_claim("greet"))
    await room.lost_claims.tick()
    room.lost_claims.worker_id = None
    assert await room.lost_claims.tick() == 0
    room.lost_claims.worker_id = WorkerId(2)
    assert [await room.lost_claims.tick(), await room.lost_claims.tick()] == [0, 1]


async def test_one_that_ends_during_the_check_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = a_claim("greet")
    room = Room(claim)
    await room.lost_claims.tick()
    genuine = room.shelf.claims_held

    async def ended(worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        claims = await genuine(worker_id, job_ids)
        room.shelf.held.clear()
        return claims

    monkeypatch.setattr(room.shelf, "claims_held", ended)
    assert [await room.lost_claims.tick(), room.events] == [0, []]
