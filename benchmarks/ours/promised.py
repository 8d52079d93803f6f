"""The promises about speed, each with its threshold: the one list that benchmarks and README follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.harness.contestant import Engine

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a promise in one run."""

    engine: str
    what: str
    wanted: str
    seen: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Promise:
    """A figure, its threshold, and in which direction it counts."""

    engine: Engine | None
    what: str
    read: Callable[[Figures], float]
    threshold: float
    at_most: bool = False
    unit: str = "/s"

    def judge(self, figures: Figures) -> Verdict | None:
        """Compare; None if the figure was not taken in this run."""
        try:
            seen = self.read(figures)
        except KeyError:
            return None
        kept = seen <= self.threshold if self.at_most else seen >= self.threshold
        sign = "≤" if self.at_most else "≥"
        wanted, found = (f"{value:,.{_digits(value)}f}{self.unit}" for value in (self.threshold, seen))
        return Verdict(str(self.engine or "both"), self.what, f"{sign} {wanted}", found, kept)


def _digits(value: float) -> int:
    return 0 if value >= 100 else 2


def _figure(engine: Engine, name: str) -> Callable[[Figures], float]:
    return lambda figures: figures[f"{engine} {name}"]


def _share(engine: Engine, part: str, whole: str) -> Callable[[Figures], float]:
    return lambda figures: figures[f"{engine} {part}"] / figures[f"{engine} {whole}"]


def _of_engine(engine: Engine, limits: Mapping[str, float]) -> list[Promise]:
    two = _share(engine, "drain, two workers", "drain, one worker")
    return [
        Promise(engine, "drain of no-op jobs, one worker", _figure(engine, "drain, one worker"), limits["drain"]),
        Promise(engine, "two workers against one", two, limits["two"], unit=" ×"),
        Promise(engine, "enqueue one by one, share of raw commits", _figure(engine, "single share"), 0.7, unit=" ×"),
        Promise(engine, "64 concurrent enqueues", _figure(engine, "concurrent enqueues"), limits["concurrent"]),
        Promise(engine, "enqueue_many", _figure(engine, "enqueue in bulk"), 100_000),
        Promise(engine, "pick-up p50", _figure(engine, "pick-up p50"), limits["p50"], at_most=True, unit=" ms"),
        Promise(engine, "pick-up p99", _figure(engine, "pick-up p99"), limits["p99"], at_most=True, unit=" ms"),
        Promise(
            engine, "claim with 1,000,000 finished jobs against none", _figure(engine, "claim ratio"), 1.2,
            at_most=True, unit=" ×",
        ),
        Promise(engine, "75 s of flow, last 15 s against first", _figure(engine, "flow ratio"), 0.9, unit=" ×"),
        Promise(engine, "sync handlers in threads", _figure(engine, "drain in threads"), 8_000),
        Promise(
            engine, "closing over 1,000 handlers that obey", _figure(engine, "closing"), 2.0, at_most=True, unit=" s"
        ),
        Promise(
            engine, "opening with 1,000 orphans, off the curve", _figure(engine, "opening"), 5, at_most=True, unit=" %"
        ),
        Promise(
            engine, "slowest tick of 10,000 schedules", _figure(engine, "tick slowest"), 50, at_most=True, unit=" ms"
        ),
        Promise(engine, "steps of jobs of ten, one worker", _figure(engine, "steps"), 5_000),
        Promise(
            engine, "spawn and gather of 10,000 children, beyond their own work", _figure(engine, "family beyond"), 5,
            at_most=True, unit=" s",
        ),
        Promise(engine, "chain of 10,000 links", _figure(engine, "chain"), 60, at_most=True, unit=" s"),
        Promise(
            engine, "drain through slots of 1,000 keys, share of ungated", _figure(engine, "gates slots ratio"), 0.7,
            unit=" ×",
        ),
        Promise(
            engine, "drain through rates of 1,000 keys, share of ungated", _figure(engine, "gates rates ratio"), 0.7,
            unit=" ×",
        ),
        Promise(
            engine, "budget with 1,000,000 spends in 30 days against none", _figure(engine, "budget ratio"), 1.5,
            at_most=True, unit=" ×",
        ),
        Promise(
            engine, "slots used by 1,000 parked jobs", _figure(engine, "parked slots"), 0, at_most=True, unit=""
        ),
        Promise(
            engine, "latest waking of 1,000 parked jobs", _figure(engine, "parked latest"), 1, at_most=True, unit=" s"
        ),
        Promise(
            engine, "claim beside 100,000 parked jobs against none", _figure(engine, "parked claim ratio"), 1.2,
            at_most=True, unit=" ×",
        ),
        Promise(engine, "nominal times that drifted", _figure(engine, "tick off"), 0, at_most=True, unit=""),
    ]  # fmt: skip


PROMISED: list[Promise] = [
    *_of_engine(Engine.SQLITE, {"drain": 40_000, "two": 1.0, "concurrent": 25_000, "p50": 1.5, "p99": 6.0}),
    *_of_engine(Engine.POSTGRES, {"drain": 30_000, "two": 1.3, "concurrent": 8_000, "p50": 2.5, "p99": 5.0}),
    Promise(
        Engine.POSTGRES,
        "75 s of flow with a snapshot held open",
        _figure(Engine.POSTGRES, "flow with held snapshot ratio"),
        0.7,
        unit=" ×",
    ),
    Promise(None, "idle worker, resident", lambda f: f["footprint idle_rss_mb"], 60, at_most=True, unit=" MB"),
    Promise(None, "import perdure", lambda f: f["footprint import_ms"], 150, at_most=True, unit=" ms"),
]
