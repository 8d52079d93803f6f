"""Schedules whose time has come, and the one transaction in which their steps are taken.

A step is taken by moving the schedule from the time and version that its caller has seen; a second process moves
nothing. From then on the schedule's row is locked, so that its record of nominal times and its last job are ours alone.
Every statement is about all schedules at once. If a firing must wait for the job of an earlier firing of the same
schedule, they go into different rounds; nearly always there is only one round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, DueSchedules, Fate, Fire, Firing, Overlap
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import moment_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import schedule_of
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.intake.intake import IntakePart
from perdure.engines.postgres.operate.commands.audit import by_columns
from perdure.engines.postgres.operate.commands.commands import CommandPart
from perdure.policy.consequences import NEXT_RUN_CAME

_MINDS: Final = frozenset({Overlap.SKIP, Overlap.CANCEL})


class _Shot(Struct, frozen=True):
    """One firing of one schedule, and its place in the answer."""

    place: tuple[int, int]
    name: str
    overlap: Overlap
    firing: Firing

    @property
    def minds_overlap(self) -> bool:
        return self.firing.job is not None and self.overlap in _MINDS and not self.firing.regardless

    @property
    def stands_alone(self) -> bool:
        """Whether nothing about it depends on the schedule's earlier jobs."""
        job = self.firing.job
        return job is None or (job.unique is None and not self.minds_overlap)


class _Tally(Struct):
    """What a call has done so far: the last job of each schedule that is ours, and the records made."""

    last_jobs: dict[str, JobId | None]
    fires: dict[tuple[int, int], Fire]


class FiringPart:
    """Finds due schedules, and fires them."""

    def __init__(
        self, naming: Naming, pool: Pool, clock: Clock | None, intake: IntakePart, commands: CommandPart
    ) -> None:
        self._statements = naming.statements("schedules/firing.sql")
        self._pool = pool
        self._clock = clock
        self._intake = intake
        self._commands = commands

    async def due_schedules(self, limit: int, declared: Collection[str]) -> DueSchedules:
        """Schedules whose time has come, most overdue first: those made at run time, and those `declared` here."""
        params: Params = {"limit": limit, "declared": text_array(list(declared)), "now": self._now()}
        rows = await self._pool.rows(self._statements["due_schedules"], params)
        now: datetime = rows[0][0]
        views = [schedule_of(row[1:]) for row in rows if row[1] is not None]
        later = [view.next_at - now for view in views if view.next_at is not None and view.next_at > now]
        due = tuple(views[: len(views) - len(later)])
        return DueSchedules(due, now, later[0] if later else None)

    async def fire(self, advances: Sequence[Advance]) -> list[Fire]:
        """Apply these steps, all in one transaction, each unless another process has; returns what was handled now."""
        if not advances:
            return []
        return await self._pool.transaction(partial(self._fire, advances))

    async def _fire(self, advances: Sequence[Advance], wire: Wire) -> list[Fire]:
        fires: dict[tuple[int, int], Fire] = {}
        for steps in _without_repeats(advances):
            tally = _Tally(await self._take([step for _, step in steps], wire), fires)
            before = dict(tally.last_jobs)
            for shots in _in_rounds(steps, tally.last_jobs):
                await self._deal(shots, tally, wire)
            changed = {name: job_id for name, job_id in tally.last_jobs.items() if job_id != before[name]}
            if changed:
                params = {"names": text_array(list(changed)), "ids": text_array(list(changed.values()))}
                await wire.fetch(self._statements["remember"], params)
        for number, step in enumerate(advances):
            if step.by is not None:
                await self._note(step, step.by, [fires[place] for place in sorted(fires) if place[0] == number], wire)
        return [fires[place] for place in sorted(fires)]

    async def _note(self, step: Advance, by: By, fires: Sequence[Fire], wire: Wire) -> None:
        """Who had these jobs made, beside the schedule's regular times."""
        made = [fire for fire in fires if fire.job_id is not None]
        params: Params = {
            "name": step.name,
            "actions": text_array([fire.cause.action for fire in made]),
            "ids": text_array([fire.job_id for fire in made]),
            "now": self._now(),
            **by_columns(by),
        }
        await wire.fetch(self._statements["note"], params)

    async def _take(self, steps: Sequence[Advance], wire: Wire) -> dict[str, JobId | None]:
        """The last jobs of the schedules whose steps are ours."""
        latest = [max((firing.nominal_at for firing in step.firings), default=None) for step in steps]
        params: Params = {
            "names": text_array([step.name for step in steps]),
            "versions": number_array([step.version for step in steps]),
            "expecteds": text_array([moment_text(step.expected) for step in steps]),
            "next_ats": text_array([moment_text(step.next_at) for step in steps]),
            "last_ats": text_array([moment_text(last_at) for last_at in latest]),
            "now": self._now(),
        }
        return dict(await wire.fetch(self._statements["take"], params))

    async def _deal(self, shots: Sequence[_Shot], tally: _Tally, wire: Wire) -> None:
        """Record these nominal times, and make the jobs of those that had no record."""
        unfinished = await self._unfinished(shots, tally, wire)
        fates = {shot.place: _fate(shot, overlaps=shot.name in unfinished) for shot in shots}
        recorded = await self._record(shots, fates, wire)
        jobs: list[tuple[_Shot, NewJob]] = []
        for shot in shots:
            at = recorded.pop((shot.name, shot.firing.nominal_at), None)
            if at is None:
                continue
            job = shot.firing.job if fates[shot.place] is Fate.FIRED else None
            if job is not None:
                jobs.append((shot, job))
            tally.fires[shot.place] = Fire(
                schedule=shot.name,
                nominal_at=shot.firing.nominal_at,
                fate=fates[shot.place],
                cause=shot.firing.cause,
                at=at,
                job_id=job.id if job else None,
                queue=job.queue if job else None,
            )
        for shot, _ in jobs:
            if shot.minds_overlap and (earlier := unfinished.get(shot.name)):
                await self._commands.call_off(wire, earlier, By(f"schedule {shot.name}", NEXT_RUN_CAME))
        await self._insert(jobs, tally, wire)

    async def _unfinished(self, shots: Iterable[_Shot], tally: _Tally, wire: Wire) -> dict[str, JobId]:
        """The last jobs that are not final, of the schedules that mind."""
        asked = {shot.name: last for shot in shots if shot.minds_overlap and (last := tally.last_jobs[shot.name])}
        if not asked:
            return {}
        rows = await wire.fetch(self._statements["unfinished"], {"ids": text_array(list(asked.values()))})
        active = {job_id for (job_id,) in rows}
        return {name: job_id for name, job_id in asked.items() if job_id in active}

    async def _record(
        self, shots: Sequence[_Shot], fates: dict[tuple[int, int], Fate], wire: Wire
    ) -> dict[tuple[str, datetime], datetime]:
        """When they were recorded, by schedule and nominal time; one with a record already is not among them."""
        jobs = [shot.firing.job if fates[shot.place] is Fate.FIRED else None for shot in shots]
        params: Params = {
            "names": text_array([shot.name for shot in shots]),
            "nominal_ats": text_array([moment_text(shot.firing.nominal_at) for shot in shots]),
            "fates": text_array([fates[shot.place] for shot in shots]),
            "causes": text_array([shot.firing.cause for shot in shots]),
            "ids": text_array([job.id if job else None for job in jobs]),
            "now": self._now(),
        }
        rows = await wire.fetch(self._statements["record"], params)
        return {(name, nominal_at): at for name, nominal_at, at in rows}

    async def _insert(self, jobs: Sequence[tuple[_Shot, NewJob]], tally: _Tally, wire: Wire) -> None:
        """As intake does; but a job that is to run after another one comes in while that one holds their key."""
        receipts = await self._intake.insert_within(wire, [job for _, job in jobs], beside_holder=True)
        for (shot, job), receipt in zip(jobs, receipts, strict=True):
            tally.last_jobs[shot.name] = receipt.job_id
            if receipt.job_id != job.id:
                fire = tally.fires[shot.place]
                tally.fires[shot.place] = replace(fire, job_id=receipt.job_id)
                params = {"id": receipt.job_id, "name": shot.name, "nominal_at": moment_text(fire.nominal_at)}
                await wire.fetch(self._statements["correct"], params)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _fate(shot: _Shot, *, overlaps: bool) -> Fate:
    if shot.firing.job is None:
        return Fate.MISSED
    if overlaps and shot.minds_overlap and shot.overlap is Overlap.SKIP:
        return Fate.OVERLAPPED
    return Fate.FIRED


def _without_repeats(advances: Sequence[Advance]) -> list[list[tuple[int, Advance]]]:
    """Split a call so that no statement meets a schedule twice; nearly always it stays whole."""
    batches: list[list[tuple[int, Advance]]] = []
    seen: dict[str, int] = {}
    for number, advance in enumerate(advances):
        turn = seen.get(advance.name, 0)
        seen[advance.name] = turn + 1
        if turn == len(batches):
            batches.append([])
        batches[turn].append((number, advance))
    return batches


def _in_rounds(steps: Iterable[tuple[int, Advance]], ours: Collection[str]) -> list[list[_Shot]]:
    """The firings of the steps that are ours, so that none depends on the job of another one in its round."""
    rounds: list[list[_Shot]] = []
    for number, step in steps:
        if step.name not in ours:
            continue
        turn, has_job = 0, False
        for position, firing in enumerate(step.firings):
            shot = _Shot((number, position), step.name, step.overlap, firing)
            turn += has_job and not shot.stands_alone
            has_job = has_job or firing.job is not None
            if turn == len(rounds):
                rounds.append([])
            rounds[turn].append(shot)
    return rounds
