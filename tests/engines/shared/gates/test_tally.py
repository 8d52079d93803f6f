"""G8: what is kept of a rate's starts never tells of fewer than have begun, and is exact where limits are small."""

from __future__ import annotations

from bisect import bisect_right
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from perdure.engines.shared.database.instants import span, to_micros
from perdure.engines.shared.gates.needs import RateNeed
from perdure.engines.shared.gates.tally import Tallies, Tally

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
NOW = 1_800_000_000_000_000


def line(limit: int, *spans: timedelta) -> RateNeed:
    return RateNeed(max(spans), min(spans), limit, limit, asking=1)


class Key:
    """One key, as an engine would keep it, and everything that has ever begun under it."""

    def __init__(self, asked: RateNeed) -> None:
        self.line = asked
        self.kept: list[Tally] = []
        self.begun: list[int] = []

    def begin(self, now: int, count: int) -> None:
        tallies = Tallies({"api": self.line}, self.kept, now)
        kept = {key: (kept_for, until) for key, kept_for, until in tallies.stale}
        kept_for, until = kept.get("api") or self.kept[0][1:3]
        [(key, document)] = tallies.after({"api": count})
        self.kept = [(key, kept_for, until, json.decode(document, type=list[int]))]
        self.begun += [now] * count

    def told(self, now: int) -> list[int]:
        starts = Tallies({"api": self.line}, self.kept, now).starts({"api"}, {})["api"]
        return [to_micros(start.at) for start in starts]

    def true(self, now: int) -> list[int]:
        return self.begun[bisect_right(self.begun, now - span(self.line.span)) :]


Batches = st.lists(st.tuples(st.integers(0, 90_000_000), st.integers(1, 60)), min_size=1, max_size=120)


@given(Batches, st.integers(1, 5_000))
def test_g8_no_start_is_forgotten_before_its_time(batches: list[tuple[int, int]], limit: int) -> None:
    key, now = Key(line(limit, MINUTE, DAY)), NOW
    for step, count in batches:
        now += step
        key.begin(now, count)
        told, true = key.told(now), key.true(now)
        assert len(told) >= len(true)
        assert all(kept >= at for kept, at in zip(told[-len(true) :], true, strict=True))
        assert all(at <= now for at in told)


@given(st.lists(st.integers(0, 5_000_000), min_size=1, max_size=300), st.integers(1, 128))
def test_g8_a_small_limit_is_kept_to_the_microsecond(steps: list[int], limit: int) -> None:
    """As far as it is used: no job starts beyond it."""
    key, now = Key(line(limit, MINUTE)), NOW
    for step in steps:
        now += step
        if len(key.true(now)) < limit:
            key.begin(now, 1)
        assert key.told(now) == key.true(now)


def test_g8_a_short_stretch_beside_a_long_one_stays_exact() -> None:
    """Six a minute and many a day: only what is older than a minute is told with less precision."""
    asked = line(6, MINUTE, DAY)
    asked.limit = 25_000
    key, now = Key(asked), NOW
    for _ in range(2_000):
        now += span(10 * SECOND)
        key.begin(now, 1)
    last_minute = [at for at in key.told(now) if at > now - span(MINUTE)]
    assert last_minute == [at for at in key.true(now) if at > now - span(MINUTE)]
    assert len(key.kept[0][3]) <= 2 * 256 + 12


def test_far_from_a_large_limit_little_is_kept_and_not_for_much_longer_than_it_counts() -> None:
    key, now = Key(line(1_000_000, SECOND)), NOW
    for _ in range(2_000):
        now += 4_000
        key.begin(now, 3)
        assert len(key.kept[0][3]) <= 4
    assert len(key.true(now)) <= len(key.told(now)) <= 3 * len(key.true(now))


def test_g8_a_large_limit_that_is_nearly_used_up_is_used_nearly_in_full() -> None:
    key, now, limit = Key(line(1_000, SECOND)), NOW, 1_000
    for _ in range(3_000):
        now += 1_000
        if len(key.told(now)) < limit:
            key.begin(now, 1)
        assert len(key.kept[0][3]) <= 2 * 256
        assert len(key.true(now)) <= limit
    assert len(key.true(now)) >= 0.98 * limit


def test_a_gate_is_remembered_for_as_long_as_its_starts_count() -> None:
    key = Key(line(5, 30 * DAY))
    key.begin(NOW, 1)
    [(_, kept_for, until, _)] = key.kept
    assert kept_for == span(30 * DAY)
    assert until >= NOW + kept_for
    shorter = Tallies({"api": line(5, SECOND)}, key.kept, NOW)
    assert shorter.kept_for("api") == kept_for
    assert shorter.stale == []
