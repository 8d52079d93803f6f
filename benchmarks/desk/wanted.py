"""What the desk must reach, and whether it does."""

from __future__ import annotations

import statistics
from typing import Any, Final

from msgspec import Struct

from benchmarks.harness.measure import percentile

PAGE: Final = 150.0  # milliseconds
COST: Final = 0.10
FIRST_PAINT: Final = 60 * 1024
COLD: Final = 0.4  # seconds
MEMORY: Final = 80.0  # MB
WANTED: Final = {
    "slowest p95": f"≤ {PAGE:.0f} ms",
    "cost of three open desks": f"≤ {COST:.0%} of the drain",
    "first paint": f"≤ {FIRST_PAINT // 1024} KB",
    "perdure jobs list, cold": f"≤ {COLD} s",
    "memory of the desk": f"≤ {MEMORY:.0f} MB",
}


class Seen(Struct, frozen=True, kw_only=True):
    """What was measured.

    `times` and `cpu` are milliseconds by question, by the wall clock and of the desk's processor time; `drained`,
    `alone` and `beside` are jobs per second while questions were asked, without and with three open desks.
    """

    times: dict[str, list[float]]
    cpu: dict[str, list[float]]
    alone: list[float]
    beside: list[float]
    memory: float
    busy: float
    drained: float
    refreshed: int
    first_paint: int
    cold: float
    cold_cpu: float
    load: float

    @property
    def slowest(self) -> tuple[float, str]:
        """The worst 95th percentile, and of what."""
        return max((percentile(times, 0.95), name) for name, times in self.times.items())

    @property
    def cost(self) -> float:
        """Which share of the drain three open desks take: the median of the ratios of each turn."""
        ratios = [beside / alone for alone, beside in zip(self.alone, self.beside, strict=True)]
        return 1 - statistics.median(ratios) if ratios else 0.0

    def figures(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        pages = {
            name: {
                "p50": percentile(times, 0.5),
                "p95": percentile(times, 0.95),
                "max": max(times),
                "processor p50": percentile(self.cpu[name], 0.5),
            }
            for name, times in self.times.items()
        }
        return {
            "milliseconds": pages,
            "drain while asked": self.drained,
            "drain without desks": self.alone,
            "drain with three desks": self.beside,
            "refreshes of open desks": self.refreshed,
            "cost of three desks": self.cost,
            "memory in MB": self.memory,
            "processors in use": self.busy,
            "first paint in bytes": self.first_paint,
            "perdure jobs list in seconds": self.cold,
            "perdure jobs list, processor seconds": self.cold_cpu,
            "load average": self.load,
        }


class Verdict(Struct, frozen=True):
    """One promise, and what was seen."""

    what: str
    seen: str
    kept: bool

    @property
    def wanted(self) -> str:
        """As it was promised."""
        return WANTED[self.what]


def judge(seen: Seen) -> list[Verdict]:
    """Promise by promise."""
    slowest, name = seen.slowest
    cold = f"{seen.cold:.2f} s, {seen.cold_cpu:.2f} s of a processor"
    return [
        Verdict("slowest p95", f"{slowest:.0f} ms: {name}", slowest <= PAGE),
        Verdict("cost of three open desks", f"{seen.cost:.1%}", seen.cost <= COST),
        Verdict("first paint", f"{seen.first_paint / 1024:.1f} KB", seen.first_paint <= FIRST_PAINT),
        Verdict("perdure jobs list, cold", cold, seen.cold <= COLD),
        Verdict("memory of the desk", f"{seen.memory:.1f} MB", seen.memory <= MEMORY),
    ]
