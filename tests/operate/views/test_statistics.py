"""Statistics at the desk: percentiles that a histogram can tell, and points that cover the span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.builders.jobs import A_FAILURE, DAY, HOUR, MINUTE, SECOND, a_job, apply, claim_one, employ

from perdure.clock import ManualClock
from perdure.domain.gate import Pause
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.operate.statistics import BOUNDS, BUCKETS, EMPTY, NO_TIMES, Ending, Point, bucket_of
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.views.statistics import percentiles, window_of
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.operate.statistics import Counted, Flush, Summed, Window
from perdure.storage.port import Store

NOON: Final = datetime(2026, 2, 3, 12, 0, 30, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    """Half a minute past noon."""
    return ManualClock(NOON)


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, "ada")


def counted(jobs: int = 1, *, ago: timedelta = 0 * MINUTE, seconds: float = 0.002, **what: Any) -> Counted:
    """So many attempts that ended some time ago, waited for 1 s each, and ran for this long."""
    waits, runs = list(EMPTY), list(EMPTY)
    waits[bucket_of(1.0)] = runs[bucket_of(seconds)] = jobs
    named = {"queue": "mail", "kind": "send", "ending": Ending.SUCCEEDED, **what}
    minute = (NOON - ago).replace(second=0)
    return Counted(minute=minute, jobs=jobs, waited=1.0 * jobs, ran=seconds * jobs, waits=waits, runs=runs, **named)


async def add(store: Store, *counts: Counted) -> None:
    await store.add_statistics(Flush("w", 1, counts))


# Percentiles

_TIMES = st.lists(st.floats(min_value=0, max_value=2_000, allow_nan=False), min_size=1, max_size=200)


def histogram_of(times: list[float]) -> list[int]:
    histogram = [0] * BUCKETS
    for time in times:
        histogram[bucket_of(time)] += 1
    return histogram


@given(_TIMES)
def test_a_percentile_is_in_the_bucket_of_the_true_one(times: list[float]) -> None:
    """So it is off by the width of that bucket at most; what is beyond the last bound is told as that bound."""
    told = percentiles(histogram_of(times), sum(times))
    ordered = sorted(times)
    assert told.count == len(times)
    assert told.mean == pytest.approx(sum(times) / len(times), abs=1e-6)
    for share, found in ((0.5, told.p50), (0.95, told.p95), (0.99, told.p99)):
        true = ordered[max(-int(-share * len(times) // 1), 1) - 1]
        bucket = bucket_of(true)
        lower = BOUNDS[bucket - 1] if bucket else 0.0
        upper = BOUNDS[min(bucket, BUCKETS - 2)]
        assert found is not None
        assert lower - 1e-6 <= found <= upper + 1e-6


@given(_TIMES)
def test_percentiles_rise(times: list[float]) -> None:
    told = percentiles(histogram_of(times), sum(times))
    assert told.p50 is not None
    assert told.p95 is not None
    assert told.p99 is not None
    assert 0 <= told.p50 <= told.p95 <= told.p99 <= BOUNDS[-1]


def test_a_bucket_is_interpolated() -> None:
    """100 times in one bucket: the median lies in its middle."""
    lower, upper = BOUNDS[9], BOUNDS[10]
    told = percentiles([100 if bucket == 10 else 0 for bucket in range(BUCKETS)], 0.0)
    assert told.p50 == pytest.approx((lower + upper) / 2, abs=1e-6)
    assert told.p95 == pytest.approx(lower + 0.95 * (upper - lower), abs=1e-6)


def test_nothing_has_no_percentiles() -> None:
    assert percentiles(EMPTY, 0.0) == NO_TIMES


def test_buckets_go_from_a_millisecond_to_six_minutes_in_equal_steps() -> None:
    assert (BOUNDS[0], BOUNDS[-1], BUCKETS) == (0.001, 360.0, 26)
    steps = {round(upper / lower, 9) for lower, upper in pairwise(BOUNDS)}
    assert len(steps) == 1
    assert [bucket_of(seconds) for seconds in (-5, 0, 0.00099, 0.001, 359, 360, 1e9)] == [0, 0, 0, 1, 24, 25, 25]


# Windows


@pytest.mark.parametrize(
    ("span", "step", "points"),
    [("1h", MINUTE, 60), ("3h", MINUTE, 180), ("1d", 15 * MINUTE, 96), ("7d", HOUR, 168), ("90d", 12 * HOUR, 180)],
)
def test_a_window_has_a_few_dozen_points_and_ends_with_the_one_under_way(
    span: str, step: timedelta, points: int
) -> None:
    window = window_of(span, NOON)
    assert (window.step, (window.until - window.since) // step) == (step, points)
    assert window.until - step <= NOON < window.until


@pytest.mark.parametrize("span", ["59s", "367d", "soon", 0])
async def test_a_span_that_makes_no_sense_is_refused(desk: Desk, span: str | int) -> None:
    with pytest.raises(ArgumentError, match="span"):
        await desk.statistics(span)


async def test_what_to_group_by_is_checked(desk: Desk) -> None:
    with pytest.raises(ArgumentError, match='"queue", "kind" or None'):
        await desk.statistics("1h", by="worker")  # type: ignore[arg-type]


# The desk


async def test_an_hour_has_a_point_for_each_minute(store: Store, desk: Desk) -> None:
    """Also for those in which nothing ended; the total is the whole span."""
    await add(
        store,
        counted(3),
        counted(1, ending=Ending.RETRIED),
        counted(2, ago=59 * MINUTE, ending=Ending.DIED),
        counted(9, ago=60 * MINUTE),
    )
    found = await desk.statistics("1h")
    [group] = found.groups
    assert (group.queue, group.kind) == (None, None)
    assert [point.at for point in group.points] == [found.since + place * MINUTE for place in range(60)]
    assert found.until == group.points[-1].at + found.step
    first, *between, last = group.points
    assert (first.died, last.succeeded, last.retried) == (2, 3, 1)
    assert set(between) == {Point(at=point.at) for point in between}
    total = group.total
    assert (total.finished, total.failed, total.attempts, total.failure_share) == (5, 3, 6, 0.5)
    assert (total.wait.count, total.wait.mean) == (6, 1.0)


async def test_a_database_without_statistics_has_an_empty_group(desk: Desk) -> None:
    found = await desk.statistics("7d")
    [group] = found.groups
    assert group.total == Point(at=found.since)
    assert group.total.failure_share is None
    assert (await desk.statistics("1d", by="kind")).groups == ()


async def test_groups_are_by_queue_or_kind(store: Store, desk: Desk, clock: ManualClock) -> None:
    """Of the chosen queue or kind, before the roll-up and after."""
    await add(store, counted(1), counted(2, kind="digest"), counted(4, queue="web"))
    for _ in range(2):
        by_queue = await desk.statistics("1d", by="queue", points=False)
        assert [(group.queue, group.total.succeeded) for group in by_queue.groups] == [("mail", 3), ("web", 4)]
        by_kind = await desk.statistics("1d", by="kind", queue="mail")
        assert [(group.kind, group.total.succeeded) for group in by_kind.groups] == [("digest", 2), ("send", 1)]
        assert [len(group.points) for group in (*by_queue.groups, *by_kind.groups)] == [0, 0, 24, 24]
        [chosen] = (await desk.statistics("1d", kind="send")).groups
        assert chosen.total.succeeded == 5
        clock.move(5 * MINUTE)
        await store.roll_up_statistics()


async def test_a_week_is_read_from_hours(store: Store, desk: Desk, clock: ManualClock) -> None:
    """Minutes are gone by then."""
    await add(store, counted(5))
    clock.move(HOUR)
    await store.roll_up_statistics()
    clock.move(3 * DAY)
    assert (await desk.statistics("7d")).groups[0].total.succeeded == 5


# Queues and kinds


async def test_a_queue_is_shown_at_a_glance(store: Store, desk: Desk, clock: ManualClock) -> None:
    """What waits and since when, what runs, who serves it, and what is paused."""
    since = clock.now()
    await store.insert([*(a_job(queue="mail") for _ in range(3)), a_job(queue="mail", delay=HOUR)])
    worker_id = await employ(store, queues=("mail",))
    clock.move(5 * SECOND)
    await apply(store, transition.died(await claim_one(store, worker_id, "mail"), Reason.EXHAUSTED, A_FAILURE))
    await claim_one(store, worker_id, "mail")
    await store.pause(Pause(id="p1", queue="web", actor="ada", at=clock.now()), By("ada"))
    await add(store, counted(7, queue="mail"))
    mail, web = await desk.queues("1h")
    assert (mail.name, mail.ready, mail.running, mail.dead) == ("mail", 1, 1, 1)
    assert (mail.oldest_ready_at, mail.parked, mail.workers) == (since, {JobState.SCHEDULED: 1}, 1)
    assert mail.slots >= 1
    assert (mail.statistics.total.succeeded, mail.paused) == (7, False)
    assert (web.name, web.paused, web.oldest_ready_at, web.statistics.total.attempts) == ("web", True, None, 0)
    assert len(web.statistics.points) == 60
    capped = (await desk.queues("1h", cap=1))[0]
    assert (capped.ready, capped.ready_capped) == (1, False)


async def test_a_deep_queue_is_counted_up_to_the_cap(store: Store, desk: Desk) -> None:
    await store.insert([a_job(queue="mail") for _ in range(12)])
    [mail] = await desk.queues(cap=10)
    assert (mail.ready, mail.ready_capped) == (10, True)


async def test_a_table_of_queues_needs_no_times_of_each_point(store: Store, desk: Desk) -> None:
    """Without them a point only counts; the figures of the whole span stay the same."""
    await add(store, counted(7, queue="mail"), counted(2, queue="mail", kind="charge"))
    full, short = await desk.queues("1d"), await desk.queues("1d", times=False)
    assert [one.statistics.total for one in short] == [one.statistics.total for one in full]
    assert short[0].statistics.total.wait.count
    kinds, counts = [
        (await desk.statistics("1d", by="kind", queue="mail", times=times)).groups for times in (True, False)
    ]
    assert [(one.kind, one.total) for one in counts] == [(one.kind, one.total) for one in kinds]
    for groups, others in (
        (full[0].statistics.points, short[0].statistics.points),
        (kinds[0].points, counts[0].points),
    ):
        assert [point.succeeded for point in others] == [point.succeeded for point in groups]
        assert any(point.wait.count for point in groups)
        assert not any(point.wait.count for point in others)


async def test_a_kind_is_shown_at_a_glance(store: Store, desk: Desk, clock: ManualClock) -> None:
    """With the queues in which it was seen, and what its app declared of it."""
    await store.declare_kinds([KindRecord(name="quiet", words={"succeeded": "sent"})])
    await store.insert([a_job(kind="send"), a_job(kind="send")])
    worker_id = await employ(store)
    await apply(store, transition.died(await claim_one(store, worker_id), Reason.EXHAUSTED, A_FAILURE))
    await claim_one(store, worker_id)
    await store.pause(Pause(id="p1", kind="send", actor="ada", at=clock.now()), By("ada"))
    await add(store, counted(1), counted(2, queue="web"))
    quiet, send = await desk.kinds("1h")
    assert (quiet.name, quiet.words, quiet.queues) == ("quiet", {"succeeded": "sent"}, ())
    assert (send.name, send.queues, send.running, send.dead, send.dead_capped) == ("send", ("mail", "web"), 1, 1, False)
    assert (send.paused, send.statistics.total.succeeded, len(send.statistics.points)) == (True, 3, 60)


async def test_a_table_of_kinds_reads_no_histogram_of_a_point(store: Store, desk: Desk) -> None:
    """They are most of what fifty kinds cost: points count, and times are those of the whole span."""
    windows: list[Window] = []
    ask = store.statistics

    async def noted(window: Window) -> list[Summed]:
        windows.append(window)
        return await ask(window)

    await add(store, counted(4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "statistics", noted)
        [send] = await desk.kinds("1d")
    assert all(window.step is None for window in windows if window.times)
    assert max((window.until - window.since) / window.span for window in windows if window.by_queue) < 30
    [own] = (await desk.statistics("1d", kind="send")).groups
    assert (send.statistics.total.wait, send.statistics.total.run) == (own.total.wait, own.total.run)
    assert own.total.wait.count == 4
    assert sum(point.succeeded for point in send.statistics.points) == 4


# Two spans


async def test_two_spans_of_the_same_length_are_compared(store: Store, desk: Desk) -> None:
    await add(
        store,
        counted(5, ago=10 * MINUTE),
        counted(3, ago=DAY + 10 * MINUTE),
        counted(2, ago=DAY + 20 * MINUTE, ending=Ending.DIED, queue="other"),
        counted(9, ago=5 * HOUR),
    )
    found = await desk.compare("1h", "1d")
    assert (found.now.groups[0].total.succeeded, found.before.groups[0].total.succeeded) == (5, 3)
    assert found.before.groups[0].total.died == 2
    assert found.now.until - found.before.until == DAY
    by_queue = await desk.compare("1h", "1d", by="queue")
    assert [group.queue for group in by_queue.before.groups] == ["mail", "other"]
    assert (await desk.compare("1h", queue="other")).now.groups[0].total.attempts == 0


@pytest.mark.parametrize(("span", "ago"), [("1h", "30m"), ("1h", "500d"), ("1h", "3d"), ("0s", None), ("x", "1d")])
async def test_spans_that_cannot_be_compared_are_refused_by_name(desk: Desk, span: str, ago: str | None) -> None:
    with pytest.raises(ArgumentError, match=r"ago|span"):
        await desk.compare(span, ago)
