"""Statistics as figures and charts for the overview, a queue and a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from perdure.domain.operate.statistics import Group, Percentiles, Point, Statistics
from perdure.surfaces.desk.charts import Line, series, sparkline
from perdure.surfaces.desk.view.numbers import short_number, short_span

_SMALLEST_SHARE: Final = 0.05  # up to this share a failure trend stays near the baseline
_LEAST_SCALE_SECONDS: Final = 0.01


class Figures(Struct, frozen=True):
    """One group of the statistics of a span, and its charts. The current interval is left out."""

    group: Group
    step: timedelta
    seconds: float

    @property
    def total(self) -> Point:
        """The totals of the whole span."""
        return self.group.total

    @property
    def points(self) -> Sequence[Point]:
        """The finished intervals."""
        return self.group.points[:-1]

    @property
    def exact_rate(self) -> str:
        """The number of finished jobs and its span, for a tooltip."""
        return f"{self.total.finished:,} jobs in {short_span(self.seconds)}"

    def trend(self, colour: str = "running") -> Markup:
        """A small chart of finished jobs; nothing if there were none."""
        if not self.total.finished:
            return Markup("")
        return sparkline([point.finished for point in self.points], label="finished jobs", colour=colour, least=1)

    def failure_trend(self) -> Markup:
        """The share of attempts that failed."""
        shares = [point.failure_share for point in self.points]
        return sparkline(shares, label="share of attempts that failed", colour="dead", least=_SMALLEST_SHARE)

    def wait_trend(self) -> Markup:
        """The 95th percentile of waits."""
        waits = [point.wait.p95 for point in self.points]
        return sparkline(waits, label="wait, 95th percentile", colour="waiting", least=_LEAST_SCALE_SECONDS)

    def run_trend(self) -> Markup:
        """The 95th percentile of run times."""
        runs = [point.run.p95 for point in self.points]
        return sparkline(runs, label="run time, 95th percentile", colour="ready", least=_LEAST_SCALE_SECONDS)

    def throughput(self) -> Markup:
        """Finished jobs and failed attempts per second, or per minute if they are few."""
        length = self.step.total_seconds()
        most = max((max(point.finished, point.failed) for point in self.points), default=0) / length
        unit, scale = ("second", 1.0) if most >= 1 else ("minute", 60.0)
        finished = [point.finished / length * scale for point in self.points]
        failed = [point.failed / length * scale for point in self.points]
        return self._series(
            f"Finished and failed, per {unit}",
            [
                Line(name="finished", values=finished, colour="ok", area=True),
                Line(name="failed", values=failed, colour="dead", area=True),
            ],
            short_number,
            1.0,
        )

    def waits(self) -> Markup:
        """How long jobs waited between due time and start."""
        return self._percentiles("Wait from due to start", "waiting", lambda point: point.wait)

    def runs(self) -> Markup:
        """How long attempts ran."""
        return self._percentiles("Run time", "ready", lambda point: point.run)

    def _percentiles(self, heading: str, colour: str, of: Callable[[Point], Percentiles]) -> Markup:
        times = [of(point) for point in self.points]
        lines = [
            Line(name="p99", values=[one.p99 for one in times], colour=colour, faint=True),
            Line(name="p95", values=[one.p95 for one in times], colour=colour),
            Line(name="p50", values=[one.p50 for one in times], colour="ok"),
        ]
        return self._series(heading, lines, short_span, _LEAST_SCALE_SECONDS)

    def _series(self, heading: str, lines: Sequence[Line], unit: Callable[[float], str], least: float) -> Markup:
        return series(
            [point.at for point in self.points],
            lines,
            heading=heading,
            label=heading,
            unit=unit,
            least=least,
            step=self.step,
        )


def figures_of(statistics: Statistics, group: Group | None = None) -> Figures:
    """The figures of a group; `group` None: of the only one."""
    length = (statistics.until - statistics.since).total_seconds()
    return Figures(group or statistics.groups[0], statistics.step, length)


def figures_in(group: Group) -> Figures:
    """The figures of a group without its statistics: step and length are derived from its points."""
    at = [point.at for point in group.points]
    step = at[1] - at[0] if len(at) > 1 else timedelta(minutes=1)
    return Figures(group, step, len(at) * step.total_seconds())
