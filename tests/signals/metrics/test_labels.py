"""Names of jobs become labels: hostile text stays text, and their number is bounded."""

from __future__ import annotations

from tests.signals.metrics.exposed import Exposed

from perdure.domain.operate.statistics import OTHER, Ending
from perdure.enqueue.counts import EnqueueCounts
from perdure.events import Emitter, ScheduleFired
from perdure.signals.metrics.exporter import Exporter
from perdure.signals.metrics.families import LES
from perdure.signals.metrics.labels import LABEL_LIMIT_CHARACTERS, Labels, clean
from perdure.signals.metrics.making import make_exporter
from perdure.signals.metrics.process import ProcessMetrics
from perdure.signals.metrics.settings import MetricsSettings
from perdure.worker.recording.totals import AttemptTotals

HOSTILE = [
    'x"} 1\nperdure_deaths_total{kind="forged',
    "back\\slash\\n",
    "line\r\nbreak",
    "\x00\x1b[31mred\u202e",
    "\ud800 lone",
    "日本語 ✿",
    "{}{{}}#",
    "",
    " ",
    "x" * 100_000,
    "# HELP perdure_deaths_total forged",
]


async def test_hostile_names_stay_inside_their_label() -> None:
    """Both formats are read back by prometheus_client, and nothing is forged."""
    enqueued = EnqueueCounts()
    for name in HOSTILE:
        enqueued.add(name, name)
    events = Emitter()
    labels = Labels(MetricsSettings())
    metrics = Exporter(ProcessMetrics(events, labels, enqueued=enqueued), None)
    for name in HOSTILE:
        events.emit(ScheduleFired(name, "now", "1", 0.5, "time", name, name))
    for accept in (None, "application/openmetrics-text"):
        answer = await metrics.exposition(accept)
        seen = Exposed(answer.body.decode(), openmetrics=accept is not None)
        assert seen.total("perdure_enqueued_total") == 2 * len(HOSTILE)
        assert seen.total("perdure_deaths_total") == 0
        names = seen.values_of("kind")
        assert clean(HOSTILE[0]) in names
        assert max(map(len, names)) <= LABEL_LIMIT_CHARACTERS
        assert all(name.isprintable() for name in names)


async def test_the_number_of_labels_is_bounded_and_nothing_is_lost() -> None:
    settings = MetricsSettings(kinds=10, queues=3, names=5)
    enqueued = EnqueueCounts(most_pairs=5_000)
    for number in range(2_000):
        enqueued.add(f"queue {number % 7}", f"kind {number}")
    events = Emitter()
    metrics = Exporter(ProcessMetrics(events, Labels(settings), enqueued=enqueued), None)
    for number in range(100):
        events.emit(ScheduleFired(f"schedule {number}", "now", "1", 0.5, "time", "q", "k"))
    for _ in range(2):  # the same labels each time
        seen = Exposed((await metrics.exposition()).body.decode())
        assert seen.total("perdure_enqueued_total") == 2_100
        assert seen.values_of("queue") == {"queue 0", "queue 1", "queue 2", OTHER}
        assert len(seen.values_of("kind")) == 11
        assert len(seen.values_of("schedule")) == 6
        assert seen.total("perdure_schedule_times_total") == 100
        assert len(seen.samples) < 500


def test_declared_kinds_keep_their_labels_when_others_come_first() -> None:
    labels = Labels(MetricsSettings(kinds=2))
    labels.declare([("default", "mine")])
    assert labels.declared == [("default", "mine")]
    assert [labels.pair("default", f"theirs {number}")[1] for number in range(3)] == ["theirs 0", OTHER, OTHER]
    assert labels.pair("default", "mine") == ("default", "mine")


def test_an_app_may_have_more_pairs_than_it_counts() -> None:
    counts = EnqueueCounts(most_pairs=2)
    for number in range(5):
        counts.add("default", f"kind {number}")
    counts.add("default", "kind 0")
    assert counts.jobs == {("default", "kind 0"): 2, ("default", "kind 1"): 1, (OTHER, OTHER): 3}


def test_names_that_are_cut_alike_are_summed_up() -> None:
    totals, names = AttemptTotals(), Labels(MetricsSettings())
    for end in "ab":
        totals.add(("q", "x" * 200 + end), Ending.DIED, 1)
    assert {names.pair(*pair) for pair in totals.pairs} == {("q", "x" * 99 + "…")}


def test_buckets_have_bounds_of_their_own() -> None:
    assert len(set(LES)) == len(LES) == 26
    assert (LES[0], LES[-2:]) == ("0.001", ("360", "+Inf"))


async def test_a_desk_without_an_app_exports_as_well() -> None:
    assert (await make_exporter(Emitter(), MetricsSettings()).exposition()).body
