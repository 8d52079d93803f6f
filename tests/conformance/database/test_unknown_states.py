"""G10: a state that only the next release knows is shown as it is, and left alone."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import DAY, HOUR, employ, enqueue, job_in, only, show, state_of
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState
from perdure.domain.operate.audit import By
from perdure.domain.stored_words import is_known, read_word
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page

WORD = "hibernating"
PLACES = {"parked": JobState.PAUSED, "finished": JobState.DEAD}
each_place = pytest.mark.parametrize("place", PLACES)


async def foreign(store: Store, url: str, place: str) -> JobId:
    """A job in a state, and for a reason, of which this release has never heard."""
    job_id = await job_in(PLACES[place], store)
    query(url, f"UPDATE {{{place}}} SET state = '{WORD}', reason = 'too cold', note = NULL")
    return job_id


def test_an_unknown_word_is_shown_as_it_is_stored() -> None:
    word = read_word(JobState, WORD)
    assert (word, str(word), word.value, f"{word}") == (WORD, WORD, WORD, WORD)
    assert isinstance(word, JobState)
    assert word == read_word(JobState, WORD)
    assert word not in frozenset(JobState)
    assert not is_known(word)
    assert all(is_known(state) and read_word(JobState, state.value) is state for state in JobState)
    assert len(JobState) == 9


@each_place
async def test_g10_its_state_and_reason_are_shown_as_they_are(store: Store, engine_url: str, place: str) -> None:
    job_id = await foreign(store, engine_url, place)
    view = await show(store, job_id)
    assert (view.state, view.reason) == (WORD, "too cold")
    assert [each.id for each in await store.jobs(JobFilter(kind="greet"), Page())] == [job_id]
    [count] = await store.counts()
    assert (count.state, count.jobs) == (WORD, 1)


@each_place
async def test_g10_it_is_found_by_its_word_and_by_no_other(store: Store, engine_url: str, place: str) -> None:
    job_id = await foreign(store, engine_url, place)
    await enqueue(store)
    for states in (ACTIVE, FINAL, PARKED, frozenset(JobState)):
        found = await store.jobs(JobFilter(states=states), Page())
        assert job_id not in [view.id for view in found]
    word = read_word(JobState, WORD)
    assert [view.id for view in await store.jobs(JobFilter(states=frozenset({word})), Page())] == [job_id]
    both = JobFilter(states=frozenset({word, JobState.READY}))
    assert len(await store.jobs(both, Page())) == 2
    hostile = JobFilter(states=frozenset({read_word(JobState, "x' OR true --")}))
    assert await store.jobs(hostile, Page()) == []
    assert await store.jobs(JobFilter(states=frozenset()), Page()) == []


@each_place
async def test_g10_commands_leave_it_alone(store: Store, clock: ManualClock, engine_url: str, place: str) -> None:
    job_id = await foreign(store, engine_url, place)
    for which in (only(job_id), JobFilter(), JobFilter(ids=(job_id,), states=frozenset({read_word(JobState, WORD)}))):
        assert await store.cancel(which, By("ada"), 10) == []
        assert await store.requeue(which, By("ada"), 10) == []
        assert await store.run_now(which, By("ada"), 10) == []
        assert await store.reschedule(which, clock.now() + HOUR, By("ada"), 10) == []
        assert await store.purge(which, By("ada"), 10) == []
        assert await store.delete(which, By("ada"), 10) == []
    clock.move(100 * DAY)
    while await store.prune(Keep(succeeded=DAY, cancelled=DAY, dead=DAY), 100):
        pass
    assert (await show(store, job_id)).state == WORD


async def test_g10_commands_still_reach_the_others(store: Store, engine_url: str) -> None:
    left = await foreign(store, engine_url, "parked")
    other = await job_in(JobState.PAUSED, store)
    assert await store.cancel(JobFilter(), By("ada"), 10) == [other]
    assert await store.requeue(JobFilter(), By("ada"), 10) == [other]
    assert await store.delete(JobFilter(), By("ada"), 10) == [other]
    assert (await show(store, left)).state == WORD


async def test_g10_it_is_not_made_ready_when_it_is_due(store: Store, clock: ManualClock, engine_url: str) -> None:
    left = await foreign(store, engine_url, "parked")
    clock.move(-HOUR)
    assert await store.parked_ahead() is None
    clock.move(3 * HOUR)
    assert await store.overdue(10) == []
    promoted = await store.promote(10)
    assert (promoted.total, promoted.next_due) == (0, None)
    assert (await store.promote(10, only=left)).total == 0
    other = await job_in(JobState.PAUSED, store)
    clock.move(2 * HOUR)
    assert (await store.promote(10)).total == 1
    assert [await state_of(store, job_id) for job_id in (left, other)] == [WORD, JobState.READY]


async def test_g10_a_worker_in_an_unknown_phase_is_listed(store: Store, engine_url: str) -> None:
    await employ(store)
    query(engine_url, "UPDATE {worker} SET phase = 'dreaming'")
    [worker] = await store.workers()
    assert worker.phase == "dreaming"


async def test_g10_a_rule_about_an_unknown_cause_is_left_alone_and_the_others_are_evaluated(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    alerts = Desk(store, "ada").alerts
    await alerts.save_channel("mail", "smtp://localhost/?from=a@example.com&to=b@example.com")
    for rule in ("deep", "new"):
        await alerts.save(make_rule(rule, "depth", limit=1, to="mail"))
    query(engine_url, f"UPDATE {{alert_rule}} SET rule = replace(rule, 'depth', '{WORD}') WHERE name = 'new'")
    await enqueue(store)
    assert [notice.rule for notice in (await Evaluation(store, clock).run()).notices] == ["deep"]
    assert [view.rule.name for view in await alerts.rules()] == ["deep"]
