"""The watch of alerts costs nothing without rules and channels, and keeps what code declares.

Of several processes one tells.
"""

from __future__ import annotations

from datetime import timedelta

from tests.conftest import OpenStore
from tests.support.builders.jobs import SECOND, apply, claim_one, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.alerts.alert import DeliveryState
from perdure.domain.alerts.rule import ALERT_QUEUE
from perdure.domain.jobs import transition
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.events import AlertRaised, Emitter, Event
from perdure.operate.alerts.addresses import make_channel
from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.storage.operate.alerts import CODE_KEPT, AlertFilter
from perdure.storage.port import Store
from perdure.upkeep.alert_watch import LEAD, AlertWatch
from perdure.worker.settings import WorkerSettings

MAIL = "smtp://localhost/?from=a@example.com&to=b@example.com&tls=none"


class Watcher:
    """A watch of one process, and what it tells."""

    def __init__(self, store: Store, clock: ManualClock, holder: str, declared: DeclaredAlerts) -> None:
        self.events: list[Event] = []
        emitter = Emitter()
        emitter.subscribe(self.events.append)
        self.watch = AlertWatch(store, emitter, clock, holder, declared)

    @property
    def raised(self) -> list[str]:
        return [event.rule for event in self.events if isinstance(event, AlertRaised)]


def deaths() -> DeclaredAlerts:
    declared = DeclaredAlerts()
    declared.add_channel(make_channel("ops", MAIL))
    declared.add_rule(make_rule("deaths", "job_died", to="ops"))
    return declared


async def die(store: Store) -> None:
    await enqueue(store)
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("ValueError", "no")))


def test_an_alert_about_shares_and_waits_can_leave_within_five_seconds_of_its_cause() -> None:
    """It waits for the statistics to be written and for the next look; a second is left for its delivery."""
    assert WorkerSettings().statistics + AlertWatch.interval <= timedelta(seconds=4)


async def test_without_rules_and_channels_it_asks_for_no_lead_and_looks_seldom(
    store: Store, clock: ManualClock
) -> None:
    watch = Watcher(store, clock, "first", DeclaredAlerts()).watch
    did = await watch.tick()
    assert (did, watch.next_wait(did)) == (None, 2 * SECOND)
    assert (await store.lead(LEAD, "another", timedelta(seconds=3))).is_ours


async def test_a_test_of_a_channel_that_was_given_up_is_shown_as_failed_before_there_is_a_rule(
    store: Store, clock: ManualClock
) -> None:
    declared = DeclaredAlerts()
    declared.add_channel(make_channel("ops", MAIL))
    await (watch := Watcher(store, clock, "one", declared).watch).tick()
    test = await Desk(store, "ada").alerts.test("ops")
    claim = await claim_one(store, await employ(store), queue=ALERT_QUEUE)
    await apply(store, transition.died(claim, Reason.PERMANENT, Failure("DeliveryRefused", "no such mailbox")))
    clock.move(SECOND)
    did = await watch.tick()
    assert watch.next_wait(did) == SECOND
    [delivery] = (await Desk(store, "ada").alerts.notice(test.id)).deliveries
    assert delivery.state is DeliveryState.FAILED


async def test_alerts_of_the_last_rule_end_with_it(store: Store, clock: ManualClock) -> None:
    watcher = Watcher(store, clock, "one", deaths())
    await watcher.watch.tick()
    clock.move(SECOND)
    await die(store)
    await watcher.watch.tick()
    assert len(await store.alerts(AlertFilter(open_only=True), 10)) == 1
    clock._now += CODE_KEPT  # a deploy has dropped the rule: no worker declares it any more
    await watcher.watch.tick()
    assert await store.alerts(AlertFilter(open_only=True), 10) == []
    assert await watcher.watch.tick() is None


async def test_of_two_processes_the_leader_reports(store: Store, clock: ManualClock, other_store: OpenStore) -> None:
    first = Watcher(store, clock, "first", deaths())
    second = Watcher(await other_store(), clock, "second", deaths())
    for each in (first, second):
        await each.watch.tick()
    assert [view.rule.name for view in await store.alert_rules()] == ["deaths"]
    await die(store)
    clock.move(SECOND)
    for each in (second, first, second):
        did = await each.watch.tick()
        assert each.watch.next_wait(did) == SECOND
    assert (first.raised, second.raised) == (["deaths"], [])


async def test_another_process_takes_over_when_the_leader_is_gone(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    await Watcher(store, clock, "first", deaths()).watch.tick()
    second = Watcher(await other_store(), clock, "second", deaths())
    await second.watch.tick()
    await die(store)
    for _ in range(10):
        clock.move(SECOND)
        await second.watch.tick()
    assert second.raised == ["deaths"]
