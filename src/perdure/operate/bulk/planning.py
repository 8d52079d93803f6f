"""The dry run of a bulk command: how many jobs match, how many it can change, and notes about them.

Jobs are counted up to a limit. Each of the newest 1,000 is read: they show which jobs would be skipped and why, and
which would wait again for a pause, a breaker or a unique key.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from perdure.domain.gate import BreakerState
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.errors import ConflictError, StoreRefused
from perdure.kinds.options import checked_instant
from perdure.operate.bulk.confirmation import Confirmed, read_token, sign
from perdure.operate.bulk.records import BulkPlan
from perdure.operate.commands.actions import Action, action_named
from perdure.operate.wording import listed, some, utc_text
from perdure.policy.limits.pausing import covers
from perdure.storage.checking import check_whole
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

JOBS_COUNTED: Final = 100_000
JOBS_SAMPLED: Final = 1_000
_JOBS_PER_CALL: Final = 500
_KEY_BYTES: Final = 32
_KEYS_CHECKED: Final = 100
_REASONS_SHOWN: Final = 5
_MAKES_READY: Final = frozenset({"requeue", "run_now"})


async def make_plan(store: Store, name: str, which: JobFilter, **said: Any) -> BulkPlan:
    """Count what a bulk command would do. `said`: the given mark, run_at and limit."""
    params = await _params(store, **said)
    action = action_named(name, params)
    aim = action.aim(which)
    jobs, capped = await count_of(store, aim, params.limit)
    sample = await _newest(store, aim, min(jobs, JOBS_SAMPLED))
    able, notes = await _findings(store, action, sample)
    if notes and jobs > len(sample):
        notes.append(f"For these notes the newest {len(sample):,} of them were checked.")
    if action.for_good and jobs:
        notes.append("This cannot be undone.")
    now = await store.now()
    confirmed = Confirmed(action=name, filter=aim, params=params, jobs=jobs, capped=capped, at=now)
    return BulkPlan(
        action=name,
        filter=aim,
        params=params,
        jobs=jobs,
        capped=capped,
        able=jobs - (len(sample) - able),
        notes=tuple(notes),
        token=sign(await _key_for_dry_run(store), confirmed),
    )


async def read_plan(store: Store, plan: BulkPlan | str) -> Confirmed:
    """What a plan or its token confirms; ConflictError if it is no longer valid."""
    token = plan if isinstance(plan, str) else plan.token
    confirmed = read_token(await _key(store), token, await store.now())
    if isinstance(plan, BulkPlan):
        given = (plan.action, plan.filter, plan.params, plan.jobs)
        if given != (confirmed.action, confirmed.filter, confirmed.params, confirmed.jobs):
            raise ConflictError(
                f"the token confirms another plan, {confirmed.action} of {some(confirmed.jobs, 'job')}: make the dry "
                "run again"
            )
    jobs, _ = await count_of(store, confirmed.filter, confirmed.params.limit)
    if abs(jobs - confirmed.jobs) > max(10, confirmed.jobs // 10):
        raise ConflictError(
            f"the dry run found {some(confirmed.jobs, 'job')}, now {jobs:,} match: make it again, and look at it"
        )
    return confirmed


async def count_of(store: Store, aim: JobFilter, limit: int | None) -> tuple[int, bool]:
    """How many jobs match, up to a limit, and whether there may be more."""
    [tally] = await store.count(aim, (), JOBS_COUNTED)
    if limit is not None and tally.jobs >= limit:
        return limit, False
    return tally.jobs, tally.capped


async def _key(store: Store) -> str:
    """The key that signs plans; raises StoreRefused if there is none yet and it cannot be stored."""
    return await store.shared_key("bulk", secrets.token_hex(_KEY_BYTES))


async def _key_for_dry_run(store: Store) -> str:
    """The key that signs plans; any key does where it cannot be stored, since no plan can be started there."""
    try:
        return await _key(store)
    except StoreRefused:
        return secrets.token_hex(_KEY_BYTES)


async def _params(
    store: Store, *, mark: str | None = None, run_at: datetime | timedelta | None = None, limit: int | None = None
) -> BulkParams:
    if limit is not None:
        check_whole("limit", limit, 1)
    if isinstance(run_at, timedelta):
        run_at = await store.now() + run_at
    return BulkParams(mark=mark, due_at=None if run_at is None else checked_instant("run_at", run_at), limit=limit)


async def _newest(store: Store, aim: JobFilter, most: int) -> list[JobView]:
    found: list[JobView] = []
    while len(found) < most:
        page = await store.jobs(aim, Page(min(_JOBS_PER_CALL, most - len(found)), found[-1].id if found else None))
        if not page:
            break
        found += page
    return found


async def _findings(store: Store, action: Action, sample: Sequence[JobView]) -> tuple[int, list[str]]:
    """How many of these it can change, and notes about them."""
    reasons = Counter(action.why_not(job) for job in sample if not action.can(job))
    able = [job for job in sample if action.can(job)]
    notes = [f"{some(count, 'job')} skipped: {why}." for why, count in reasons.most_common(_REASONS_SHOWN)]
    if action.stops and not action.for_good and (running := sum(job.state is JobState.RUNNING for job in able)):
        notes.append(f"{some(running, 'job')} run now: they are asked to stop.")
    denied = 0
    if action.name in _MAKES_READY:
        denied, unsure = await _denied(store, able)
        if denied:
            notes.append(f"{some(denied, 'job')} skipped: another job holds their unique key.")
        if unsure:
            notes.append(f"{some(unsure, 'job')} more have a unique key, which may be held: not checked.")
        notes += await _held(store, able)
    return len(able) - denied, notes


async def _denied(store: Store, jobs: Sequence[JobView]) -> tuple[int, int]:
    """How many would not get their unique key, and how many were not checked."""
    by_key: dict[str, list[JobView]] = {}
    for job in jobs:
        if job.unique_key is not None:
            by_key.setdefault(job.unique_key, []).append(job)
    asked = list(by_key)[:_KEYS_CHECKED]
    denied = 0
    for key in asked:
        holder = await store.key_holder(key)
        ids = [job.id for job in by_key[key]]
        denied += len(ids) - 1 if holder is None or holder in ids else len(ids)
    return denied, sum(len(by_key[key]) for key in list(by_key)[_KEYS_CHECKED:])


async def _held(store: Store, jobs: Sequence[JobView]) -> list[str]:
    """Pauses and breakers that would hold such jobs back again."""
    notes = []
    for pause in await store.pauses():
        if held := sum(covers(pause, job.queue, job.kind, job.args) for job in jobs):
            until = "it is resumed" if pause.until is None else utc_text(pause.until)
            notes.append(f"{some(held, 'job')} held by pause {pause.id} until {until}.")
    if opened := [view.name for view in await store.breakers() if view.state is BreakerState.OPEN]:
        notes.append(f"Breaker {listed(opened)} is open: jobs behind it wait again.")
    return notes
