"""A clock that is set back silences no rule: what happens is told, as if the last look had been just now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.operate.alerts.test_evaluation import MAIL, die, said, watch
from tests.support.builders.jobs import HOUR, MINUTE, SECOND, enqueue

from perdure.clock import ManualClock
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.storage.port import Store


@pytest.fixture
async def desk(store: Store) -> Desk:
    desk = Desk(store, "ops")
    await desk.alerts.save_channel("ops", MAIL)
    return desk


def jump(clock: ManualClock, by: timedelta) -> None:
    """The date changes, the time that passes does not."""
    clock._now += by


async def test_a_new_cause_is_reported_after_the_clock_was_set_back(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    rules = [make_rule("deaths", "job_died", to="ops"), make_rule("deep", "depth", limit=1, lasting="1m", to="ops")]
    evaluation = await watch(desk, store, clock, *rules)
    await enqueue(store, queue="mail")
    assert await said(evaluation) == [], "it has not lasted yet"
    jump(clock, -HOUR)
    await die(store)
    assert [notice.rule for notice in await said(evaluation)] == ["deaths"]
    await die(store, kind="refund")
    clock.move(MINUTE)
    assert sorted(notice.title for notice in await said(evaluation)) == [
        "Queue mail has 1 ready job",
        "refund died: ValueError: no card …",
    ]


async def test_a_cause_that_was_reported_waits_for_no_hour_that_comes_again(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deaths", "job_died", to="ops", throttle="10m"))
    await die(store)
    assert len(await said(evaluation)) == 1
    jump(clock, -HOUR)
    await die(store)
    assert len(await said(evaluation)) == 1
    await die(store)
    clock.move(SECOND)
    assert await said(evaluation) == [], "from then on it is throttled as ever"
    clock.move(10 * MINUTE)
    assert len(await said(evaluation)) == 1


async def test_deaths_before_the_clock_was_set_back_are_counted_once(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    rule = make_rule("storm", "deaths", limit=2, within="5m", to="ops", throttle="1s")
    evaluation = await watch(desk, store, clock, rule)
    for _ in range(2):
        await die(store)
    assert len(await said(evaluation)) == 1
    jump(clock, -HOUR)
    clock.move(SECOND)
    assert await said(evaluation) == [], "they are of just now"
    clock.move(6 * MINUTE)
    assert [notice.title[:10] for notice in await said(evaluation)] == ["Over after"]
    clock.move(53 * MINUTE)
    assert await said(evaluation) == [], "and do not come back with the hour"
