"""The columns of the histograms, and the SQL that lists them all: each list would be 52 lines."""

from __future__ import annotations

from typing import Final

from perdure.domain.operate.statistics import BUCKETS, Ending

WAITS: Final = tuple(f"wait_{bucket}" for bucket in range(BUCKETS))
RUNS: Final = tuple(f"run_{bucket}" for bucket in range(BUCKETS))
_ALL: Final = (*WAITS, *RUNS)

SLOTS: Final = {
    "buckets": ", ".join(_ALL),
    "bucket_sums": ", ".join(f"sum({column}) AS {column}" for column in _ALL),
    "waits": ", ".join(WAITS),
    "runs": ", ".join(RUNS),
    "ending_sums": ", ".join(
        f"coalesce(sum(jobs) FILTER (WHERE ending = '{ending}'), 0) AS {ending}" for ending in Ending
    ),
    "endings": ", ".join(Ending),
    "added_buckets": ", ".join(f"{column} = kept.{column} + excluded.{column}" for column in _ALL),
}
"""Slots of `statistics.sql`, by name. An upsert calls the row that is there `kept`."""
