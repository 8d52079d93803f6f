"""Rules are evaluated from what the desk sees: one alert for a cause, one notice, and none twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import (
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.alerts.alert import Cause, DeliveryState, Notice, NoticeSort
from perdure.domain.alerts.quiet import read_quiet
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE, AlertRule, When
from perdure.domain.jobs import transition
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.operate.statistics import BUCKETS, Ending, bucket_of
from perdure.domain.schedule import Schedule
from perdure.events import Emitter
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.looks import LOOKS
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.storage.operate.alerts import CODE_KEPT, BudgetLimits
from perdure.storage.operate.statistics import Counted, Flush
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.upkeep.scheduler import Scheduler

ME = By("ops", source="code")
MAIL = "smtp://localhost/?from=a@example.com&to=b@example.com&tls=none"


@pytest.fixture
async def desk(store: Store) -> Desk:
    desk = Desk(store, "ops")
    await desk.alerts.save_channel("ops", MAIL)
    await desk.alerts.save_channel("boss", MAIL)
    return desk


async def watch(desk: Desk, store: Store, clock: ManualClock, *rules: AlertRule) -> Evaluation:
    """An evaluation that has looked once, after these rules were made."""
    for rule in rules:
        await desk.alerts.save(rule)
    evaluation = Evaluation(store, clock)
    await evaluation.run()
    clock.move(SECOND)
    return evaluation


async def die(store: Store, kind: str = "charge", message: str = "no card 7", queue: str = "default") -> None:
    await enqueue(store, kind=kind, queue=queue)
    claim = await claim_one(store, await employ(store), queue)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("ValueError", message, None)))


async def said(evaluation: Evaluation) -> list[Notice]:
    return list((await evaluation.run()).notices)


async def test_b14_a_death_is_reported_once_with_its_delivery_in_the_same_transaction(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    await die(store)  # before there is a rule
    evaluation = await watch(desk, store, clock, make_rule("deaths", "job_died", to=["ops", "boss"]))
    assert (await evaluation.run()).open == 0, "what was before is not told"
    await die(store)
    [notice] = await said(evaluation)
    assert notice.title == "charge died: ValueError: no card …"
    assert [one.channel for one in notice.deliveries] == ["ops", "boss"]
    jobs = await store.jobs(JobFilter(queue=ALERT_QUEUE), Page(10))
    assert {job.id for job in jobs} == {one.job_id for one in notice.deliveries}
    assert {(job.kind, job.state) for job in jobs} == {(ALERT_KIND, JobState.READY)}
    clock.move(MINUTE)
    assert await said(evaluation) == []
    assert await said(Evaluation(store, clock)) == [], "a restart forgets nothing"
    [alert] = await desk.alerts.open()
    assert (alert.rule, alert.count, alert.told_count) == ("deaths", 1, 1)


async def test_ten_thousand_deaths_of_one_cause_are_one_notice_and_a_count(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deaths", "job_died", to="ops", throttle="10m"))
    worker = await employ(store)
    for _ in range(20):
        await store.insert([a_job(kind="charge") for _ in range(500)])
        claims = await claim_some(store, worker, 500)
        moves = [transition.died(one, Reason.EXHAUSTED, Failure("ValueError", "no", None)) for one in claims]
        await apply(store, *moves)
    [notice] = await said(evaluation)
    assert (notice.alerts, notice.count) == (1, 10_000)
    assert notice.title == "charge died: ValueError: no (10,000 times)"
    for _ in range(3):
        await die(store, message="no")
        clock.move(SECOND)
        assert await said(evaluation) == [], "throttled"
    clock.move(10 * MINUTE)
    [more] = await said(evaluation)
    assert more.count == 10_003
    assert len(await store.jobs(JobFilter(queue=ALERT_QUEUE), Page(10))) == 2


async def test_two_leaders_at_once_report_it_once(store: Store, desk: Desk, clock: ManualClock) -> None:
    await watch(desk, store, clock, make_rule("deaths", "job_died", to="ops"))
    await die(store)
    book = await store.alert_book(HOUR)
    first = await Evaluation(store, clock).run()
    assert len(first.notices) == 1
    stale = Evaluation(_Frozen(store, book), clock)  # type: ignore[arg-type] # it began before the other had written
    second = await stale.run()
    assert (second.written, second.notices) == (False, ())
    assert len(await store.jobs(JobFilter(queue=ALERT_QUEUE), Page(10))) == 1


class _Frozen:
    """A store whose book of alerts is one of before."""

    def __init__(self, store: Store, book: object) -> None:
        self._store = store
        self._book = book

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def alert_book(self, _since: object) -> object:
        return self._book


async def test_a_new_error_is_reported_once_however_often_it_comes(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    await die(store, message="old trouble")
    clock.move(3 * MINUTE)
    evaluation = await watch(desk, store, clock, make_rule("news", "new_error", to="ops"))
    await die(store, message="old trouble")
    assert await said(evaluation) == []
    await die(store, message="new trouble")
    [notice] = await said(evaluation)
    assert notice.title == "charge fails in a new way: ValueError: new trouble"
    for _ in range(4):
        clock.move(HOUR)
        await die(store, message="new trouble")
        assert await said(evaluation) == []


async def test_deaths_in_a_time_open_and_end(store: Store, desk: Desk, clock: ManualClock) -> None:
    rule = make_rule("storm", "deaths", limit=3, within="5m", to="ops", severity="critical")
    evaluation = await watch(desk, store, clock, rule)
    for expected in (0, 0, 1):
        await die(store)
        assert len(await said(evaluation)) == expected
        clock.move(SECOND)
    clock.move(6 * MINUTE)
    [over] = await said(evaluation)
    assert over.sort is NoticeSort.RECOVERY
    assert over.title.startswith("Over after 6m1s: 3 charge jobs died within 5m")


async def test_deaths_on_both_sides_of_a_minute_count_together(store: Store, desk: Desk, clock: ManualClock) -> None:
    rule = make_rule("storm", "deaths", limit=2, within="1m", to="ops")
    evaluation = await watch(desk, store, clock, rule)
    clock.move(timedelta(seconds=58 - (await store.now()).second % 58))
    await die(store)
    assert await said(evaluation) == []
    clock.move(30 * SECOND)
    await die(store)
    assert len(await said(evaluation)) == 1


async def test_deaths_of_hours_are_kept_by_the_minute(store: Store, desk: Desk, clock: ManualClock) -> None:
    rule = make_rule("slow storm", "deaths", limit=8, within="2h", to="ops")
    evaluation = await watch(desk, store, clock, rule)
    found = []
    for _ in range(8):
        await die(store)
        found.append(len(await said(evaluation)))
        clock.move(15 * MINUTE)
    assert found == [0] * 7 + [1]


async def test_a_preview_of_deaths_counts_those_of_its_time(store: Store, desk: Desk, clock: ManualClock) -> None:
    for _ in range(3):
        await die(store)
        clock.move(4 * MINUTE)
    seen = await desk.alerts.preview(make_rule("storm", "deaths", limit=2, within="9m", to="ops"))
    assert seen.title == "2 charge jobs died within 9m"
    assert (await desk.alerts.preview(make_rule("storm", "deaths", limit=3, within="9m", to="ops"))).title is None


async def test_depth_and_age_last_and_recover(store: Store, desk: Desk, clock: ManualClock) -> None:
    deep = make_rule("deep", "depth", limit=2, to="ops", lasting="30s")
    old = make_rule("old", "oldest", queue="mail", limit="1m", to="ops", recovery=False)
    evaluation = await watch(desk, store, clock, deep, old)
    for _ in range(2):
        await enqueue(store, queue="mail")
    assert await said(evaluation) == [], "it must last"
    clock.move(31 * SECOND)
    [notice] = await said(evaluation)
    assert notice.title == "Queue mail has 2 ready jobs"
    clock.move(MINUTE)
    [notice] = await said(evaluation)
    assert notice.rule == "old"
    await desk.cancel(JobFilter(queue="mail"))
    [over] = await said(evaluation)
    assert (over.rule, over.sort) == ("deep", NoticeSort.RECOVERY)
    clock.move(HOUR)
    assert await said(evaluation) == []
    assert await desk.alerts.open() == []


async def test_what_needs_a_person_on_the_overview_can_be_a_rule(store: Store, desk: Desk, clock: ManualClock) -> None:
    rules = [
        make_rule("breaker", "breaker_opened", to="ops"),
        make_rule("lost", "worker_lost", to="ops"),
        make_rule("unserved", "no_worker", to="ops"),
        make_rule("money", "budget", to="ops"),
        make_rule("database", "doctor", to="ops"),
    ]
    evaluation = await watch(desk, store, clock, *rules)
    await store.declare_alerts((), (), [BudgetLimits("openai", ((24 * HOUR, 10.0),))])
    await employ(store)
    await desk.holds.open_breaker("bank", why="down")
    await enqueue(store, queue="reports")
    clock.move(2 * MINUTE)
    found = {notice.rule: notice.title for notice in await said(evaluation)}
    assert found["breaker"].startswith("Breaker bank is open")
    assert found["lost"].startswith("Worker ")
    assert found["unserved"] == "Queue reports has 1 job and no worker"
    await desk.holds.close_breaker("bank")
    [over] = [notice.title for notice in await said(evaluation) if notice.rule == "breaker"]
    assert over.startswith("Over after")


async def test_each_queue_without_a_worker_is_an_alert_however_many_there_are(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("unserved", "no_worker", to="ops"))
    queues = [f"queue-{number}" for number in range(5)]
    for queue in queues:
        await enqueue(store, queue=queue)
    clock.move(2 * MINUTE)
    await said(evaluation)
    assert sorted(alert.key for alert in await desk.alerts.open()) == queues


async def test_quiet_hours_hold_back_and_then_report_all_of_it_at_once(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    clock.move(_until(clock, 23))
    rule = make_rule("deep", "depth", limit=1, to="ops", quiet="22:00-07:00 UTC")
    evaluation = await watch(desk, store, clock, rule)
    await enqueue(store, queue="mail")
    await enqueue(store, queue="reports")
    assert await said(evaluation) == []
    await desk.cancel(JobFilter(queue="mail"))
    clock.move(HOUR)
    assert await said(evaluation) == []
    clock.move(7 * HOUR)
    [notice] = await said(evaluation)
    assert notice.alerts == 2
    assert "Queue reports has 1 ready job" in notice.body
    assert "Over after 1h" in notice.body, "what was over meanwhile is told too"
    assert await said(evaluation) == []


def _until(clock: ManualClock, hour: int) -> timedelta:
    now = clock.now()
    return (now.replace(hour=hour, minute=0, second=0, microsecond=0) - now) % (24 * HOUR)


async def test_a_rule_that_looks_for_something_else_now_reports_it(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("mail", "depth", queue="mail", limit=1, to="ops"))
    await enqueue(store, queue="mail")
    assert [notice.title for notice in await said(evaluation)] == ["Queue mail has 1 ready job"]
    await desk.alerts.save(make_rule("mail", "oldest", queue="mail", limit="1m", to="ops"))
    clock.move(SECOND)
    assert await said(evaluation) == []
    assert await desk.alerts.open() == []
    clock.move(MINUTE)
    assert [notice.title for notice in await said(evaluation)] == ["The oldest job of queue mail waits for 1m1s"]


async def test_alerts_of_a_rule_that_no_code_declares_any_more_end_with_it(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("other", "depth", queue="none", limit=1, to="ops"))
    await store.declare_alerts([make_rule("mail", "depth", queue="mail", limit=1, to="ops")], [], [])
    await enqueue(store, queue="mail")
    assert len(await said(evaluation)) == 1
    clock.move(CODE_KEPT + SECOND)
    assert await said(evaluation) == []
    assert await desk.alerts.open() == []
    await store.declare_alerts([make_rule("mail", "depth", queue="mail", limit=1, to="ops")], [], [])
    assert len(await said(evaluation)) == 1, "it is a new alert of a new rule"


async def test_a_paused_rule_is_silent_and_makes_nothing_up(store: Store, desk: Desk, clock: ManualClock) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deaths", "job_died", to="ops"))
    await desk.alerts.pause("deaths", until=clock.now() + HOUR, why="known")
    await die(store)
    assert await said(evaluation) == []
    clock.move(HOUR + SECOND)
    assert await said(evaluation) == []
    await die(store)
    assert len(await said(evaluation)) == 1


async def test_a_channel_that_fails_is_reported_by_another_and_deliveries_raise_no_alerts(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    rules = [make_rule("deaths", "job_died", to="ops"), make_rule("storm", "deaths", limit=1, to="ops")]
    evaluation = await watch(desk, store, clock, *rules)
    test = await desk.alerts.test("ops")
    await store.note_delivery(test.id, "ops", "no route to host")
    assert await said(evaluation) == [], "one failure is none yet"
    worker = await employ(store)
    claim = await claim_one(store, worker, ALERT_QUEUE)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("OSError", "no route to host", None)))
    [notice] = await said(evaluation)
    assert (notice.sort, notice.title) == (NoticeSort.CHANNEL, "Alert channel ops does not work")
    assert [one.channel for one in notice.deliveries] == ["boss"]
    assert (await desk.alerts.notice(test.id)).deliveries[0].state is DeliveryState.FAILED
    assert [view.is_broken for view in await desk.alerts.channels()] == [False, True]
    for _ in range(5):
        clock.move(MINUTE)
        await store.note_delivery(notice.id, "boss", "no route to host either")
    assert await said(evaluation) == [], "no channel is left that could tell it, and nothing loops"
    await store.note_delivery(notice.id, "boss", None)
    assert await said(evaluation) == []
    await store.note_delivery(test.id, "ops", None)
    [notice] = await said(evaluation)
    assert notice.title == "Alert channel ops works again"


async def test_what_goes_to_a_channel_that_is_gone_waits_and_another_is_reported(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deaths", "job_died", to="ops"))
    await store.delete_alert_channel("ops", ME)  # as one of code ends with the last worker that declares it
    await die(store)
    [notice] = await said(evaluation)
    assert notice.title == "Alert channel ops does not exist any more"
    assert [one.channel for one in notice.deliveries] == ["boss"]
    assert await said(evaluation) == []
    await desk.alerts.save_channel("ops", MAIL)
    clock.move(HOUR)
    assert {each.title for each in await said(evaluation)} == {
        "charge died: ValueError: no card …",
        "Alert channel ops is set up again",
    }


async def test_a_channel_that_was_only_saved_again_is_not_said_to_work(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deaths", "job_died", to="ops"))
    test = await desk.alerts.test("ops")
    for _ in range(3):
        await store.note_delivery(test.id, "ops", "no route to host")
    assert [notice.title for notice in await said(evaluation)] == ["Alert channel ops does not work"]
    clock.move(MINUTE)
    await desk.alerts.save_channel("ops", MAIL)
    [notice] = await said(evaluation)
    assert notice.title == "Alert channel ops is set up again"
    assert "has sent nothing since.\nTry it: perdure alerts test ops" in notice.body
    for _ in range(3):
        await store.note_delivery(test.id, "ops", "no route to host")
    assert [notice.title for notice in await said(evaluation)] == ["Alert channel ops does not work"]


async def test_a_rule_that_breaks_down_does_not_silence_the_others(
    store: Store, desk: Desk, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_down(*_: object) -> list[Cause]:
        raise ZeroDivisionError

    monkeypatch.setitem(LOOKS, When.DOCTOR, break_down)
    elsewhere = replace(read_quiet("quiet", "22:00-07:00"), zone="Europe/Atlantis")  # this machine does not know it
    here_unknown = replace(make_rule("asleep", "depth", limit=1, to="ops"), quiet=(elsewhere,))
    rules = (make_rule("a check", "doctor", to="ops"), here_unknown, make_rule("deaths", "job_died", to="ops"))
    evaluation = await watch(desk, store, clock, *rules)
    await enqueue(store, queue="mail")
    await die(store)
    assert [notice.rule for notice in await said(evaluation)] == ["deaths"]
    await evaluation.run()
    assert caplog.text.count("rule a check could not be evaluated: ZeroDivisionError") == 1
    assert caplog.text.count("rule asleep could not be evaluated: ZoneInfoNotFoundError") == 1


async def test_a_schedule_that_is_late_and_times_that_were_let_go_are_reported(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("nightly", "schedule_missed", to="ops", about="beat"))
    for name in ("beat", "other"):
        await desk.calendar.save(Schedule(name=name, kind="beat", expression="@every 1m"))
    clock.move(HOUR)
    [notice] = await said(evaluation)
    assert notice.title.startswith("Schedule beat is overdue by")
    await Scheduler(store, Emitter(), clock, frozenset(), lambda: None).tick()
    told = await said(evaluation)
    assert "Schedule beat missed a time: no process fired it (59 times)" in told[0].body
    assert "Over after" in told[0].body
    assert await said(evaluation) == []


async def test_a_share_of_failures_and_slow_starts_are_reported(store: Store, desk: Desk, clock: ManualClock) -> None:
    share = make_rule("share", "failure_share", limit="50%", within="5m", least=4, to="ops")
    slow = make_rule("slow", "wait_p95", queue="mail", limit="10s", least=4, to="ops")
    evaluation = await watch(desk, store, clock, share, slow)
    minute = clock.now().replace(second=0, microsecond=0)
    waits = tuple(4 if bucket == bucket_of(60) else 0 for bucket in range(BUCKETS))
    counts = [
        Counted(minute=minute, queue="mail", kind=kind, ending=ending, jobs=4, waited=240.0, waits=waits)
        for kind, ending in (("bad", Ending.RETRIED), ("good", Ending.SUCCEEDED), (ALERT_KIND, Ending.DIED))
    ]
    await store.add_statistics(Flush("a worker", 1, tuple(counts)))
    found = {notice.rule: notice.title for notice in await said(evaluation)}
    assert found["share"] == "100% of bad attempts fail"
    assert found["slow"].startswith("One in twenty jobs of queue mail waits for")
    clock.move(10 * MINUTE)
    assert {notice.sort for notice in await said(evaluation)} == {NoticeSort.RECOVERY}


async def test_a_budget_is_reported_at_its_share_and_when_it_is_spent(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    near, spent = make_rule("near", "budget", to="ops"), make_rule("spent", "budget", limit=1, to="ops")
    evaluation = await watch(desk, store, clock, near, spent)
    await store.declare_alerts((), (), [BudgetLimits("openai", ((24 * HOUR, 10.0),))])
    claim = await start(store)
    await store.spend(claim, "openai", 7.0)
    assert await said(evaluation) == []
    await store.spend(claim, "openai", 1.5)
    assert [notice.title for notice in await said(evaluation)] == ["Budget openai is spent to 85%"]
    await store.spend(claim, "openai", 2.0)
    assert [(notice.rule, notice.title) for notice in await said(evaluation)] == [("spent", "Budget openai is spent")]


async def test_a_flapping_cause_does_not_ring_each_time(store: Store, desk: Desk, clock: ManualClock) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deep", "depth", limit=1, to="ops", throttle="10m"))
    titles = []
    for _ in range(6):
        await enqueue(store, queue="mail")
        titles += [notice.title for notice in await said(evaluation)]
        clock.move(MINUTE)
        await desk.cancel(JobFilter(queue="mail"))
        titles += [notice.title for notice in await said(evaluation)]
        clock.move(SECOND)
    assert titles == ["Queue mail has 1 ready job", "Over after 1m: Queue mail has 1 ready job"]


async def test_many_causes_of_one_rule_are_one_notice(store: Store, desk: Desk, clock: ManualClock) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deep", "depth", limit=1, to="ops"))
    for number in range(30):
        await enqueue(store, queue=f"queue-{number}")
    [notice] = await said(evaluation)
    assert notice.alerts == 30
    assert notice.title.endswith("(and 29 more)")
    assert "… and 20 more" in notice.body


async def test_a_flood_of_causes_is_reported_together_after_five_notices_a_minute(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    evaluation = await watch(desk, store, clock, make_rule("deep", "depth", limit=1, to="ops", throttle="1h"))
    told = []
    for number in range(20):
        await enqueue(store, queue=f"queue-{number}")
        told += [notice.alerts for notice in await said(evaluation)]
        clock.move(SECOND)
    assert told == [1] * 5
    clock.move(MINUTE)
    assert [notice.alerts for notice in await said(evaluation)] == [15], "none is lost, and none waits for an hour"


async def test_causes_of_a_grouped_rule_share_one_notice_per_throttle(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    rule = make_rule("deep", "depth", limit=1, to="ops", throttle="10m", group="rule")
    evaluation = await watch(desk, store, clock, rule)
    for number in range(3):
        await enqueue(store, queue=f"queue-{number}")
        assert len(await said(evaluation)) == (number == 0)
        clock.move(MINUTE)
    clock.move(10 * MINUTE)
    assert [notice.alerts for notice in await said(evaluation)] == [2]
