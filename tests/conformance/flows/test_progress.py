"""FlowStore, progress: the last word of a running job on how far it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import (
    DAY,
    HOSTILE,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    only,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Progress
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Keep


def a_word(clock: ManualClock, current: float = 3, total: float | None = 10, note: str | None = "pages") -> Progress:
    """How far a job is now."""
    return Progress(current=current, total=total, note=note, at=clock.now())


async def tell(store: Store, claim: Claim, word: Progress) -> None:
    """Say it of one job."""
    await store.save_progress({claim.job_id: (claim, word)})


async def test_the_last_word_is_seen_while_the_job_runs(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    assert await store.progress(claim.job_id) is None
    first = a_word(clock)
    await tell(store, claim, first)
    assert await store.progress(claim.job_id) == first
    clock.move(SECOND)
    last = a_word(clock, 10.5, None, None)
    await tell(store, claim, last)
    assert await store.progress(claim.job_id) == last


async def test_many_jobs_speak_at_once(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job() for _ in range(200)])
    claims = await claim_some(store, await employ(store), 200)
    words = {claim.job_id: (claim, a_word(clock, number, 200)) for number, claim in enumerate(claims)}
    await store.save_progress(words)
    assert [await store.progress(job_id) for job_id in words] == [word for _, word in words.values()]


async def test_a_job_whose_claim_is_lost_has_no_say(store: Store, clock: ManualClock) -> None:
    """The others of the same call are heard, and so is the attempt that holds the job now."""
    lost = await start(store)
    await apply(store, transition.released(lost))
    held = await claim_one(store, await employ(store))
    await tell(store, held, a_word(clock, 1))
    other = await start(store)
    await store.save_progress({lost.job_id: (lost, a_word(clock, 9)), other.job_id: (other, a_word(clock, 5))})
    assert await store.progress(lost.job_id) == a_word(clock, 1)
    assert await store.progress(other.job_id) == a_word(clock, 5)


async def test_a_job_that_is_over_or_was_never_there_has_no_say(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await tell(store, claim, a_word(clock, 9))
    await apply(store, transition.succeeded(claim, None, ()))
    await tell(store, claim, a_word(clock, 10))
    assert await store.progress(claim.job_id) == a_word(clock, 9)
    assert await store.progress(new_job_id()) is None


async def test_nothing_to_say_is_said_at_no_cost(store: Store) -> None:
    claim = await start(store)
    await store.save_progress({})
    assert await store.progress(claim.job_id) is None


@pytest.mark.parametrize("note", HOSTILE)
async def test_notes_are_kept_to_the_letter(store: Store, clock: ManualClock, note: str) -> None:
    claim = await start(store)
    await tell(store, claim, a_word(clock, note=note))
    assert await store.progress(claim.job_id) == a_word(clock, note=note)


async def test_a_note_that_cannot_be_kept_does_not_silence_the_others(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job(), a_job()])
    odd, plain = await claim_some(store, await employ(store))
    await store.save_progress({odd.job_id: (odd, a_word(clock, note="a\0b")), plain.job_id: (plain, a_word(clock))})
    assert await store.progress(plain.job_id) == a_word(clock)
    kept = await store.progress(odd.job_id)
    assert kept is not None
    assert (kept.current, (kept.note or "")[:1]) == (3, "a")


@pytest.mark.parametrize("how", ["purge", "prune", "delete"])
async def test_progress_goes_with_its_job(store: Store, clock: ManualClock, how: str) -> None:
    claim = await start(store)
    await tell(store, claim, a_word(clock))
    if how != "delete":
        await apply(store, transition.succeeded(claim, None, ()))
        clock.move(timedelta(days=2))
    if how == "prune":
        assert await store.prune(Keep(succeeded=DAY), 10) == 1
    elif how == "purge":
        assert await store.purge(only(claim.job_id), By("ops"), 10) == [claim.job_id]
    else:
        assert await store.delete(only(claim.job_id), By("ops"), 10) == [claim.job_id]
    assert await store.progress(claim.job_id) is None
