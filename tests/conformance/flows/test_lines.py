"""FlowStore, log lines: the newest that a job has logged are kept with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import (
    DAY,
    HOSTILE,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    only,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.log_lines import LINE_LIMIT_CHARACTERS, LogLine, NewLine
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Alongside, Keep


def a_line(clock: ManualClock, claim: Claim, text: str = "sent", level: str = "info") -> NewLine:
    """A line that is logged now."""
    return NewLine(claim=claim, at=clock.now(), level=level, text=text)


async def texts(store: Store, claim: Claim) -> list[str]:
    """What is kept with the job."""
    return [line.text for line in await store.lines(claim.job_id)]


async def test_lines_are_kept_in_their_order_over_several_calls(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    assert await store.lines(claim.job_id) == []
    first = clock.now()
    await store.save_lines([a_line(clock, claim, "one"), a_line(clock, claim, "two", "warning")])
    clock.move(SECOND)
    await store.save_lines([a_line(clock, claim, "three")])
    assert await store.lines(claim.job_id) == [
        LogLine(number=1, at=first, level="info", text="one"),
        LogLine(number=2, at=first, level="warning", text="two"),
        LogLine(number=3, at=clock.now(), level="info", text="three"),
    ]


async def test_the_newest_are_looked_at_and_those_after_a_number(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await store.save_lines([a_line(clock, claim, str(number)) for number in range(1, 11)])
    assert [line.number for line in await store.lines(claim.job_id, 3)] == [8, 9, 10]
    assert [line.number for line in await store.lines(claim.job_id, after=8)] == [9, 10]
    assert [line.number for line in await store.lines(claim.job_id, 1, after=8)] == [10]


async def test_old_lines_go_when_new_ones_come(store: Store, clock: ManualClock) -> None:
    """Those of other jobs stay."""
    await store.insert([a_job(), a_job()])
    claim, other = await claim_some(store, await employ(store))
    await store.save_lines([a_line(clock, other, "other")])
    await store.save_lines([a_line(clock, claim, str(number)) for number in range(1, 251)])
    assert await texts(store, claim) == [str(number) for number in range(51, 251)]
    await store.save_lines([a_line(clock, claim, "last")])
    assert await texts(store, claim) == [*(str(number) for number in range(52, 251)), "last"]
    await store.save_lines([a_line(clock, claim, "only these"), a_line(clock, claim, "two")], keep=2)
    assert await texts(store, claim) == ["only these", "two"]
    assert await texts(store, other) == ["other"]


async def test_many_jobs_log_at_once(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job() for _ in range(100)])
    claims = await claim_some(store, await employ(store), 100)
    await store.save_lines([a_line(clock, claim, f"{turn}") for turn in range(3) for claim in claims])
    assert [await texts(store, claim) for claim in claims] == [["0", "1", "2"]] * 100


async def test_a_lost_claim_logs_nothing(store: Store, clock: ManualClock) -> None:
    """The attempt that holds the job now does, and goes on counting."""
    lost = await start(store)
    await store.save_lines([a_line(clock, lost, "before")])
    await apply(store, transition.released(lost))
    held = await claim_one(store, await employ(store))
    await store.save_lines([a_line(clock, lost, "late"), a_line(clock, held, "now")], keep=2)
    assert await texts(store, held) == ["before", "now"]
    await store.save_lines([a_line(clock, lost, "later still")], keep=1)
    assert await texts(store, held) == ["before", "now"], "nor does it drop any"


async def test_nothing_is_kept_of_nothing(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await store.save_lines([])
    await store.save_lines([a_line(clock, claim)], keep=0)
    assert await store.lines(claim.job_id) == []
    assert await store.lines(new_job_id()) == []


@pytest.mark.parametrize("text", [*HOSTILE, "\x1b[31mred\x07\r\n", ""])
async def test_lines_are_kept_to_the_letter(store: Store, clock: ManualClock, text: str) -> None:
    claim = await start(store)
    await store.save_lines([a_line(clock, claim, text)])
    assert await texts(store, claim) == [text]


async def test_a_line_that_cannot_be_kept_as_it_is_does_not_silence_the_others(
    store: Store, clock: ManualClock
) -> None:
    claim = await start(store)
    await store.save_lines([a_line(clock, claim, text) for text in ("a\0b", "half \ud83d", "x" * 5_000, "plain")])
    odd, half, long, plain = await texts(store, claim)
    assert (odd[0], odd[-1], half[:5], plain) == ("a", "b", "half ", "plain")
    assert (len(long), long[-2:]) == (LINE_LIMIT_CHARACTERS, "x…")


@pytest.mark.parametrize("how", ["purge", "prune", "delete"])
async def test_lines_go_with_their_job(store: Store, clock: ManualClock, how: str) -> None:
    claim = await start(store)
    await store.save_lines([a_line(clock, claim)])
    if how != "delete":
        await apply(store, transition.succeeded(claim, None, ()))
        assert await texts(store, claim) == ["sent"], "they outlive the attempt"
        clock.move(timedelta(days=2))
    if how == "prune":
        assert await store.prune(Keep(succeeded=DAY), 10) == 1
    elif how == "purge":
        assert await store.purge(only(claim.job_id), By("ops"), 10) == [claim.job_id]
    else:
        assert await store.delete(only(claim.job_id), By("ops"), 10) == [claim.job_id]
    assert await store.lines(claim.job_id) == []


async def test_g5_lines_commit_with_the_acknowledgement_or_not_at_all(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await store.save_lines([a_line(clock, claim, "before")])
    effects = await store.begin_effects()
    done = await effects.commit_with(
        transition.succeeded(claim, None, ()), Alongside(lines=(a_line(clock, claim, "inside"),), keep_lines=1)
    )
    assert (done.applied, await texts(store, claim)) == (1, ["inside"])
    again = await store.begin_effects()
    late = Alongside(lines=(a_line(clock, claim, "late"),))
    assert (await again.commit_with(transition.succeeded(claim, None, ()), late)).stale == (claim,)
    assert await texts(store, claim) == ["inside"]
