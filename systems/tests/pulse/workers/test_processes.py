"""Real processes: one is stopped in good order (C1), one is killed and started again (C2), one shows stacks (C13)."""

from __future__ import annotations

import re
import signal
import time
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from systems.tests.pulse.processes import pulse
from systems.tests.pulse.support import SQLITE, at_work_in_real_time, found, put, seen, text_of, view_of
from tests.support.waiting import until

from perdure import JobFilter, JobView, Opening, Page
from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.log_lines import public_id
from perdure_systems.pulse.standins import ModelStandin

pytestmark = pytest.mark.slow


@pytest.fixture
def url(box: Sandbox, engine_url: str) -> str:
    """The database that the test and the processes share; the test submits and looks through a sandbox."""
    del box
    return engine_url


async def test_c1_a_stop_lets_the_current_task_finish_and_keeps_a_checkpoint_at_no_cost(
    url: str, tmp_path: Path, standin: ModelStandin
) -> None:
    """A document of 30 paragraphs is being indexed, one after the other, when SIGTERM or SIGINT comes."""
    number = signal.SIGTERM if url.startswith("sqlite") else signal.SIGINT
    standin.delay = 0.05
    submitted = await put(30, handler="index")
    async with pulse(url, tmp_path) as first:
        await until(lambda: standin.answered >= 5)
        assert await first.end(number) == 0
        assert "❀ Closing" in first.log
        assert "❀ Closed: worker" in first.log
    view = await view_of(submitted.job_id)
    assert (view.state, view.failures, view.crashes) == ("ready", 0, 0)
    assert view.cursor == str(standin.answered), "the current paragraph was finished, and is in the checkpoint"
    async with at_work_in_real_time(url):
        done = await seen(submitted.job_id)
    assert (done.state, done.value, done.failures, done.crashes) == ("succeeded", 30, 0, 0)
    assert standin.asked == text_of(30).split("\n\n"), "no paragraph was sent twice, and none was left out"


@SQLITE
async def test_c1_what_does_not_finish_in_time_is_cancelled_and_released_too(
    url: str, tmp_path: Path, standin: ModelStandin
) -> None:
    """The model does not answer: past the stop timeout, 2 s here, the call is cancelled and the job goes back."""
    standin.open.clear()
    submitted = await put(1)
    async with pulse(url, tmp_path) as process:
        await until(lambda: len(standin.asked) == 1)
        child = (await (await app.desk("test")).children(submitted.job_id))[0]
        began = time.monotonic()
        assert await process.end(signal.SIGTERM) == 0
        took = time.monotonic() - began
    assert 1.0 < took < 12.0, "it had its time, and no more"
    view = await view_of(child)
    assert (view.state, view.failures, view.crashes) == ("ready", 0, 0)
    assert "handed 1 back" in process.log


@pytest.mark.parametrize("engine_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.proof)], indirect=True)
async def test_c2_the_jobs_of_a_killed_process_come_back_step_by_step_those_with_a_checkpoint_first(
    url: str, tmp_path: Path, standin: ModelStandin
) -> None:
    """Kill -9 with 14 jobs at work, 3 of them with a checkpoint. The phase is 10 s: 2 s for nine, 30 s for the rest."""
    standin.delay, standin.holds = 0.02, "/v1/analyse"
    standin.open.clear()
    await put(11, "held.txt")
    indexed = [(await put(400, f"long{number}.txt", "index")).job_id for number in range(3)]
    async with pulse(url, tmp_path, PULSE_WORKERS="14") as first:
        await found(lambda: _all_at_work(indexed, 14))
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
    async with pulse(url, tmp_path, 2, PULSE_WORKERS="14") as second:
        await until(lambda: "14 orphaned jobs return over 32 s, 3 with a checkpoint come first" in second.log)
        orphans = await found(lambda: _orphans(14))
        waits = [wait.total_seconds() for wait in Opening("10s").waits(14)]
        assert waits[0] == 0
        assert (waits[9], waits[13]) == (2.0, 32.0)
        due = sorted(view.due_at for view in orphans if view.due_at is not None)
        steps = [(later - sooner).total_seconds() for sooner, later in pairwise(due)]
        expected = [later - sooner for sooner, later in pairwise(waits[1:])]
        assert steps[-len(expected) :] == pytest.approx(expected[-len(steps) :], abs=0.001)
        back_first = [view.id for view in sorted(orphans, key=lambda view: view.due_at or view.created_at)][:3]
        assert set(back_first) == set(indexed)
        async with httpx.AsyncClient(base_url=second.address) as http:
            page = (await http.get("/")).text
        assert "jobs of a dead worker come back step by step" in page
        assert "dead" in page, "the killed worker is shown"
        first_of_all = await found(lambda: _running_again(indexed))
        assert (first_of_all.crashes, first_of_all.failures) == (1, 0), "a crash is no attempt"
        assert int(first_of_all.cursor or 0) > 0, "it goes on where it was"
        assert await second.end(signal.SIGTERM) == 0


async def _all_at_work(indexed: list[str], jobs: int) -> bool:
    running = (await (await app.desk("test")).jobs(JobFilter(states="running"), Page(limit=100))).jobs
    cursors: dict[str, str | None] = {view.id: view.cursor for view in running}
    return len(running) == jobs and all(cursors.get(job_id) is not None for job_id in indexed)


async def _orphans(number: int) -> list[JobView]:
    """All jobs that have crashed; those that are back have no due time."""
    found = (await (await app.desk("test")).jobs(JobFilter(queue="pulse"), Page(limit=100))).jobs
    crashed = [view for view in found if view.crashes == 1]
    return crashed if len(crashed) == number else []


async def _running_again(indexed: list[str]) -> JobView | None:
    views = [await view_of(job_id) for job_id in indexed]
    return next((view for view in views if view.state == "running"), None)


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_sigquit_prints_every_thread_and_task_to_stderr_and_exits_with_2(
    url: str, tmp_path: Path, standin: ModelStandin
) -> None:
    standin.open.clear()
    await put(1)
    async with pulse(url, tmp_path) as process:

        def waits() -> bool:
            """Whether the job waits for the model, which takes a moment from when the model is asked."""
            process.process.send_signal(signal.SIGUSR1)
            return re.search(r"model\.py:\d+ _post", process.err.read_text()) is not None

        await until(lambda: len(standin.asked) == 1 and waits())
        before = len(process.err.read_text())
        assert await process.end(signal.SIGQUIT) == 2
    told = process.err.read_text()[before:]
    task = next(piece for piece in told.split("\n\n") if "kind pulse.analyse attempt 1" in piece)
    assert re.search(r"model\.py:\d+ _post", task), "the line at which the job waits"
    assert re.search(r"  awaits .+$", task, re.MULTILINE)
    assert "thread MainThread" in told
    assert "daemon thread perdure-stacks" in told
    assert "❀" not in process.log, "nothing was closed: the process may be stuck"
    running = (await (await app.desk("test")).jobs(JobFilter(states="running"))).jobs
    assert [public_id(view.id)[:3] for view in running] == ["JB_"]
