"""Outcomes of attempts as families: the same for what a worker has counted and for the totals of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.domain.operate.statistics import Ending
from perdure.signals.metrics.catalogue import Metric
from perdure.signals.metrics.families import Numbers, Times


class AttemptFamilies:
    """Attempts, retries and deaths, and the histograms of wait and run times."""

    def __init__(self, *, attempts: Metric, retries: Metric, deaths: Metric, wait: Metric, run: Metric) -> None:
        self._attempts = Numbers(attempts)
        self._retries = Numbers(retries)
        self._deaths = Numbers(deaths)
        self._wait = Times(wait)
        self._run = Times(run)

    @property
    def parts(self) -> tuple[Numbers | Times, ...]:
        """All of them."""
        return self._attempts, self._retries, self._deaths, self._wait, self._run

    def add(self, pair: tuple[str, str], endings: Mapping[Ending, int]) -> None:
        """Count attempts of a queue and kind; held-back jobs do not count as attempts."""
        for ending in Ending:
            if ending is not Ending.HELD and endings.get(ending):
                self._attempts.add(endings[ending], *pair, ending)
        self._retries.add(endings.get(Ending.RETRIED, 0) + endings.get(Ending.CRASHED, 0), *pair)
        self._deaths.add(endings.get(Ending.DIED, 0), *pair)

    def add_times(
        self, pair: tuple[str, str], waits: tuple[Sequence[int], float], runs: tuple[Sequence[int], float]
    ) -> None:
        """Add the histograms of a queue and kind, each with the sum of its times."""
        self._wait.add(*waits, *pair)
        self._run.add(*runs, *pair)
