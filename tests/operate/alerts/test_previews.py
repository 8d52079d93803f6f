"""A preview shows the notice that a rule would send now, and sends none."""

from __future__ import annotations

from tests.support.builders.jobs import HOUR, MINUTE, apply, claim_one, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.operate.alerts.previews import preview
from perdure.operate.alerts.rules import make_rule
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page


async def die(store: Store) -> None:
    await enqueue(store, kind="charge")
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("ValueError", "no")))


async def test_it_looks_an_hour_back_and_nothing_is_sent(store: Store, clock: ManualClock) -> None:
    rule = make_rule("deaths", "job_died", to="ops")
    assert ((before := await preview(store, rule)).title, before.causes) == (None, ())
    await die(store)
    clock.move(10 * MINUTE)
    seen = await preview(store, rule)
    assert (seen.title, len(seen.causes), seen.quiet_until) == ("charge died: ValueError: no", 1, None)
    assert await preview(store, rule) == seen, "the next look finds it again"
    assert await store.alert_rules() == []
    assert len(await store.jobs(JobFilter(), Page(10))) == 1, "no delivery"
    clock.move(2 * HOUR)
    assert (await preview(store, rule)).title is None
    await die(store)
    assert (await preview(store, rule)).title == "charge died: ValueError: no", "also of an error that is known"


async def test_a_cause_need_not_last_and_quiet_hours_say_until_when(store: Store, clock: ManualClock) -> None:
    await enqueue(store, queue="mail")
    whole_day = ("00:00-12:00", "12:00-00:00")
    seen = await preview(store, make_rule("deep", "depth", limit=1, lasting="1h", to="ops", quiet=whole_day))
    assert seen.title is not None
    assert seen.quiet_until is not None
    assert seen.quiet_until > clock.now()
