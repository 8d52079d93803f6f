"""Incidents are opened and resolved with the evaluation that finds why, whatever becomes of the notices to people."""

from __future__ import annotations

import pytest
from tests.operate.alerts.test_evaluation import MAIL, said, watch
from tests.support.builders.jobs import HOUR, MINUTE, SECOND, enqueue

from perdure.clock import ManualClock
from perdure.domain.alerts.alert import Notice
from perdure.domain.alerts.quiet import read_quiet
from perdure.errors import ConflictError
from perdure.events import Emitter
from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.storage.operate.alerts import CODE_KEPT
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.upkeep.alert_watch import AlertWatch


@pytest.fixture
async def desk(store: Store) -> Desk:
    desk = Desk(store, "ops")
    await desk.alerts.save_channel("ops", MAIL)
    await desk.alerts.save_channel("pager", "env:A_PAGER_THAT_ONLY_WORKERS_KNOW")
    return desk


async def drain(desk: Desk, queue: str) -> None:
    await desk.cancel(JobFilter(queue=queue))


def channels(notice: Notice) -> list[str]:
    return [one.channel for one in notice.deliveries]


async def test_causes_that_end_one_by_one_resolve_their_incident_with_the_last_of_them(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deep", "depth", limit=1, to=["ops", "pager"]))
    for queue in ("mail", "pulse"):
        await enqueue(store, queue=queue)
    [opened] = await said(evaluation)
    [incident] = opened.opens
    assert (incident.ends, opened.resolves) == (True, ())
    await drain(desk, "mail")
    [first] = await said(evaluation)
    assert (first.alerts, first.opens, first.resolves) == (1, (), ()), "people are told, the incident stays open"
    await drain(desk, "pulse")
    [last] = await said(Evaluation(store, clock))
    assert (last.alerts, last.resolves) == (1, (incident.key,)), "a restart forgets nothing"
    assert await said(evaluation) == []


async def test_a_resolve_does_not_wait_for_a_notice_that_is_throttled_or_off(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    """The cause comes back and ends again before people may be told of its first end: they are told nothing more."""
    grouped = make_rule("deep", "depth", limit=1, to=["ops", "pager"], group="rule", throttle="10m")
    silent = make_rule("old", "oldest", queue="mail", limit="1s", to="pager", recovery=False)
    evaluation = await watch(desk, store, clock, grouped, silent)
    await enqueue(store, queue="mail")
    clock.move(2 * SECOND)
    opened = {notice.rule: notice.opens[0].key for notice in await said(evaluation)}
    await drain(desk, "mail")
    resolved = await said(evaluation)
    assert {notice.rule: notice.resolves for notice in resolved} == {rule: (key,) for rule, key in opened.items()}
    assert [(notice.only_resolves, channels(notice)) for notice in resolved] == [(True, ["pager"])] * 2
    for _ in range(2):
        await enqueue(store, queue="mail")
        assert await said(evaluation) == []
        await drain(desk, "mail")
        assert await said(evaluation) == []
        clock.move(SECOND)


async def test_a_resolve_comes_in_quiet_hours_and_after_a_pause(store: Store, desk: Desk, clock: ManualClock) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deep", "depth", limit=1, to="pager"))
    await enqueue(store, queue="mail")
    [opened] = await said(evaluation)
    await desk.alerts.pause("deep", until=clock.now() + HOUR)
    await drain(desk, "mail")
    assert await said(evaluation) == [], "a paused rule is not evaluated"
    clock.move(HOUR + SECOND)
    quiet = read_quiet("quiet", "00:00-23:59 UTC")
    await desk.alerts.save(make_rule("deep", "depth", limit=1, to="pager", quiet=quiet))
    [over] = await said(evaluation)
    assert (over.only_resolves, over.resolves) == (True, (opened.opens[0].key,))


@pytest.mark.parametrize("how", ["deleted", "other channel", "other cause"])
async def test_a_resolve_comes_when_the_rule_is_gone_or_sends_elsewhere(
    store: Store, desk: Desk, clock: ManualClock, how: str
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deep", "depth", limit=1, to="pager"))
    await enqueue(store, queue="mail")
    [opened] = await said(evaluation)
    with pytest.raises(ConflictError, match="is used by 'deep'"):
        await desk.alerts.delete_channel("pager")
    if how == "deleted":
        await desk.alerts.delete("deep")
    elif how == "other channel":
        await desk.alerts.save(make_rule("deep", "depth", limit=1, to="ops"))
    else:
        await desk.alerts.save(make_rule("deep", "oldest", limit="6h", to="ops"))
    with pytest.raises(ConflictError, match="has open incidents: a worker resolves them"):
        await desk.alerts.delete_channel("pager")
    watching = AlertWatch(store, Emitter(), clock, "a worker that starts now", DeclaredAlerts())
    did = await watching.tick()
    assert did is not None
    [over] = did.notices
    assert (over.resolves, channels(over)) == ((opened.opens[0].key,), ["pager"])
    with pytest.raises(ConflictError, match="has open incidents"):
        await desk.alerts.delete_channel("pager")
    await store.note_delivery(over.id, "pager", None)
    await desk.alerts.delete_channel("pager")


async def test_an_incident_waits_for_a_channel_that_no_worker_declares(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    pager = (await store.alert_channels())[1].channel
    code = make_rule("code", "depth", limit=1, to="shop")
    shop = type(pager)(name="shop", address=pager.address)
    evaluation = Evaluation(store, clock)
    await store.declare_alerts([code], [shop], [])
    await evaluation.run()
    await enqueue(store, queue="mail")
    clock.move(SECOND)
    [opened] = await said(evaluation)
    clock.move(CODE_KEPT + MINUTE)
    assert await said(evaluation) == []
    await store.declare_alerts([], [shop], [])
    [over] = await said(evaluation)
    assert (over.resolves, channels(over)) == ((opened.opens[0].key,), ["shop"])
