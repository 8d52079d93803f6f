"""`perdure stats --span`: rates, failures, waits and run times, for people and for scripts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.operate.statistics import EMPTY, Ending, bucket_of
from perdure.storage.operate.statistics import Counted, Flush
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit


async def an_hour(store: Store) -> None:
    """A busy queue with failures, a quiet one, and a kind with a hostile name."""
    minute = (await store.now()).replace(second=0, microsecond=0) - timedelta(minutes=5)

    def counted(queue: str, kind: str, ending: Ending, jobs: int, seconds: float) -> Counted:
        histogram = list(EMPTY)
        histogram[bucket_of(seconds)] = jobs
        return Counted(
            minute=minute,
            queue=queue,
            kind=kind,
            ending=ending,
            jobs=jobs,
            waited=seconds * jobs,
            ran=seconds * jobs,
            waits=histogram,
            runs=histogram,
        )

    counts = (
        counted("default", "report", Ending.SUCCEEDED, 3, 12.0),
        counted("mail", "send", Ending.SUCCEEDED, 900, 0.02),
        counted("mail", "send", Ending.RETRIED, 100, 0.5),
        counted("mail", "\x1b[31mred", Ending.HELD, 7, 0.0),
    )
    await store.add_statistics(Flush("w", 1, counts))


def test_rates_are_shown_by_queue_and_by_kind(cli: Cli, arrange: Arrange[None]) -> None:
    """The busiest first; numbers fit into 80 columns, and names are harmless."""
    arrange(an_hour)
    page = cli("stats", "--span", "1h").out
    lines = [line.split() for line in page.splitlines()]
    assert lines[0][:5] == ["Queue", "Done", "/min", "Failed", "Share"]
    assert [line[0] for line in lines[1:3]] == ["mail", "default"]
    assert lines[1][1:6] == ["900", "15", "100", "10.0%", "7"]
    assert "903 jobs finished in the last 1h, 10.0% of the attempts failed." in page
    assert "\x1b[31m" not in page


def test_rates_of_one_queue_by_kind_as_json(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(an_hour)
    answer = cli("stats", "--span", "1d", "--by", "kind", "--queue", "mail", "--json")
    assert answer.code == Exit.OK
    document: dict[str, Any] = answer.json
    assert set(document) == {"since", "until", "total", "kinds"}
    assert (document["total"]["finished"], document["total"]["held"]) == (900, 7)
    [send] = [kind for kind in document["kinds"] if kind["kind"] == "send"]
    assert (send["failed"], send["failure_share"], send["run"]["count"]) == (100, 0.1, 1000)
    assert send["run"]["p50"] < 0.05 < send["run"]["p99"]


def test_a_time_without_attempts_is_reported(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    assert cli("stats", "--span", "1h").out == "No attempts in the last 1h.\n"


@pytest.mark.parametrize(
    ("words", "part"), [(("--span", "soon"), "span"), (("--by", "kind"), "needs --span"), (("--span", "1s"), "from 1m")]
)
def test_what_makes_no_sense_is_refused(cli: Cli, arrange: Arrange[None], words: tuple[str, ...], part: str) -> None:
    arrange(lambda store: store.check_schema())
    answer = cli("stats", *words)
    assert (answer.code, part in answer.err) == (Exit.USAGE, True), answer.err
