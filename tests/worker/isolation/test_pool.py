"""Handlers in processes of their own: whatever one does there, its worker lives and its record tells."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.programs.isolated_jobs import app
from tests.support.waiting import is_gone, text_of, until

from perdure.clock import SystemClock
from perdure.domain.jobs import outcome as outcomes
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import BadArguments, Cancelled, Done, Failed, Outcome, Released
from perdure.errors import ProcessDied
from perdure.policy.failures import type_name
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.running import Running, Stop
from perdure.worker.isolation.pool import ProcessCrew

GRACE = 5.0


@pytest.fixture
async def crew() -> AsyncIterator[ProcessCrew]:
    crew = ProcessCrew(size=4, grace=GRACE)
    yield crew
    await crew.close()


def attempt(kind: str, /, **args: Any) -> Running:
    """An attempt at a job with these arguments, its second."""
    now = SystemClock().now()
    document = msgspec.json.encode(args).decode()
    claim = Claim(new_job_id(), 7, kind, "default", document, 1, 0, 3, now, now)
    return Running(claim, app.kinds[kind], StopFlag(), 0.0)


def failed(outcome: Outcome | None) -> Failed:
    """The outcome, which must be a failure that may be retried."""
    assert isinstance(outcome, Failed)
    return outcome


@pytest.mark.parametrize("kind", ["add", "add_later"])
async def test_sync_and_async_handlers_give_back_their_result(crew: ProcessCrew, kind: str) -> None:
    assert await crew.run(attempt(kind, a=20, b=22)) == Done("42")


async def test_the_context_is_that_of_the_attempt_and_each_has_a_process_of_its_own(crew: ProcessCrew) -> None:
    told = []
    for _ in range(2):
        outcome = await crew.run(attempt("tell"))
        assert isinstance(outcome, Done)
        told.append(msgspec.json.decode(outcome.result or ""))
    assert [each["greeting"] for each in told] == ["hello", "hello"]
    assert {(each["attempt"], each["token"], each["queue"], each["closing"]) for each in told} == {
        (2, 7, "default", False)
    }
    assert {each["parent"] for each in told} == {os.getpid()}
    assert len({each["pid"] for each in told}) == 2


async def test_arguments_that_do_not_fit_are_reported_by_name(crew: ProcessCrew) -> None:
    outcome = await crew.run(attempt("add", a="one", b=2))
    assert isinstance(outcome, BadArguments)
    assert "argument a" in outcome.failure.message


async def test_exceptions_are_judged_by_the_kinds_own_triage(crew: ProcessCrew) -> None:
    assert isinstance(await crew.run(attempt("fail", how="key")), outcomes.Permanent)
    outcome = failed(await crew.run(attempt("fail", how="value")))
    assert (outcome.failure.error_type, outcome.failure.message) == ("ValueError", "as ordered")
    assert outcome.kinds[0] == "ValueError"
    assert "isolated_jobs.py" in (outcome.failure.traceback or "")


async def test_os_exit_fails_the_attempt_with_exit_code_and_last_words(crew: ProcessCrew) -> None:
    outcome = failed(await crew.run(attempt("leave", code=3)))
    assert outcome.failure.error_type == type_name(ProcessDied)
    assert "exit code 3" in outcome.failure.message
    assert outcome.failure.traceback == "so long"


async def test_exit_code_zero_without_a_result_is_a_failure_too(crew: ProcessCrew) -> None:
    assert "exit code 0" in failed(await crew.run(attempt("leave", code=0))).failure.message


async def test_sys_exit_is_an_exception_like_any_other(crew: ProcessCrew) -> None:
    assert failed(await crew.run(attempt("exit_politely"))).failure.error_type == "SystemExit"


async def test_a_native_crash_is_reported_with_its_signal_and_the_python_stack(crew: ProcessCrew) -> None:
    outcome = failed(await crew.run(attempt("crash_natively")))
    assert "SIGSEGV" in outcome.failure.message
    assert "in crash_natively" in (outcome.failure.traceback or "")


async def test_a_kill_from_outside_hints_at_the_out_of_memory_killer(crew: ProcessCrew) -> None:
    outcome = failed(await crew.run(attempt("die_by", name="SIGKILL")))
    assert "SIGKILL" in outcome.failure.message
    assert "out-of-memory" in outcome.failure.message


async def test_memory_beyond_the_limit_fails_the_attempt_and_names_the_limit(crew: ProcessCrew) -> None:
    assert await crew.run(attempt("eat", mib=16)) == Done(str(16 * 1024 * 1024))
    outcome = failed(await crew.run(attempt("eat", mib=512)))
    assert outcome.failure.error_type == "MemoryError"
    assert "memory limit of 64 MiB" in outcome.failure.message


@pytest.mark.parametrize("kind", ["never_end", "never_end_async"])
async def test_a_handler_that_never_ends_is_killed_at_its_time_limit(crew: ProcessCrew, kind: str) -> None:
    outcome = failed(await asyncio.wait_for(crew.run(attempt(kind)), 30))
    assert outcome.timed_out
    assert "300ms" in outcome.failure.message
    assert "most recent call first" in (outcome.failure.traceback or ""), "where it hung is told"


@pytest.mark.parametrize(
    ("kind", "last_note"),
    [("wait_until_stopped", "AttemptInterrupted"), ("wait_until_stopped_async", "CancelledError: cancelled")],
)
async def test_a_handler_that_must_stop_is_reported_and_may_clean_up(
    crew: ProcessCrew, tmp_path: Path, kind: str, last_note: str
) -> None:
    note = tmp_path / "note"
    running = attempt(kind, note=str(note))
    task = asyncio.create_task(crew.run(running))
    await until(lambda: text_of(note))
    running.stop = Stop.CANCELLED
    assert running.interrupt is not None
    running.interrupt()
    assert isinstance(await asyncio.wait_for(task, 30), Cancelled)
    assert text_of(note) == last_note


async def test_a_sigterm_that_is_not_ours_stops_nothing(crew: ProcessCrew, tmp_path: Path) -> None:
    """A service manager tells every process at once; the worker decides how long its handlers may go on."""
    note = tmp_path / "note"
    running = attempt("watch_for_closing", note=str(note))
    task = asyncio.create_task(crew.run(running))
    os.kill(int(await until(lambda: text_of(note))), signal.SIGTERM)
    crew.announce_closing()
    assert await asyncio.wait_for(task, 30) == Done('"closing"')


async def test_force_ends_a_handler_that_does_not_listen_with_all_that_it_started(
    crew: ProcessCrew, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    running = attempt("ignore_everything", note=str(note))
    task = asyncio.create_task(crew.run(running))
    pids = [int(pid) for pid in (await until(lambda: text_of(note))).split()]
    running.stop = Stop.CLOSING
    assert running.interrupt is not None
    assert running.force is not None
    running.interrupt()
    running.force()
    assert await asyncio.wait_for(task, 30) == Released()
    await until(lambda: all(is_gone(pid) for pid in pids))


async def test_what_a_handler_leaves_behind_ends_with_its_process(crew: ProcessCrew) -> None:
    outcome = await crew.run(attempt("leave_a_process_behind"))
    assert isinstance(outcome, Done)
    await until(lambda: is_gone(int(outcome.result or "")))


async def test_an_outcome_does_not_wait_for_a_process_that_lingers(crew: ProcessCrew) -> None:
    async with asyncio.timeout(30):
        assert await crew.run(attempt("linger")) == Done('"done"')


async def test_a_cancelled_run_leaves_no_process(crew: ProcessCrew, tmp_path: Path) -> None:
    note = tmp_path / "note"
    task = asyncio.create_task(crew.run(attempt("ignore_everything", note=str(note))))
    pids = [int(pid) for pid in (await until(lambda: text_of(note))).split()]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: all(is_gone(pid) for pid in pids))


async def test_a_dead_spare_costs_no_attempt(crew: ProcessCrew) -> None:
    await crew.run(attempt("add", a=1, b=1))
    spare = (await until(lambda: list(crew._spares.values())))[0]
    os.kill(spare.pid, signal.SIGKILL)
    await until(lambda: is_gone(spare.pid))
    assert await crew.run(attempt("add", a=1, b=1)) == Done("2")


async def test_no_more_run_at_once_than_the_crew_has_seats(tmp_path: Path) -> None:
    crew = ProcessCrew(size=1, grace=GRACE)
    first, second = tmp_path / "first", tmp_path / "second"
    tasks = [asyncio.create_task(crew.run(attempt("watch_for_closing", note=str(note)))) for note in (first, second)]
    await until(lambda: text_of(first))
    assert crew.waiting == 1
    assert not second.exists()
    crew.announce_closing()
    assert await asyncio.wait_for(asyncio.gather(*tasks), 30) == [Done('"closing"')] * 2
    await crew.close()


async def test_a_job_that_another_process_cannot_find_is_reported_so(crew: ProcessCrew) -> None:
    running = attempt("add", a=1, b=2)
    running.kind = msgspec.structs.replace(running.kind, name="renamed")
    outcome = failed(await crew.run(running))
    assert "job renamed cannot run isolated" in outcome.failure.message


SCRIPT = """
import asyncio, os, sys
from perdure import App
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.isolation.pool import ProcessCrew
from perdure.worker.attempt.running import Running

app = App("sqlite:///unused.db")

@app.job(isolate=True)
def whoami() -> str:
    return __name__

@app.job(isolate=True)
def hang() -> None:
    print(os.getpid(), flush=True)
    while True:
        pass

async def main(name):
    crew, now = ProcessCrew(1, 1.0), SystemClock().now()
    claim = Claim(new_job_id(), 1, name, "default", "{}", 0, 0, 3, now, now)
    print(await crew.run(Running(claim, app.kinds[name], StopFlag(), 0.0)), flush=True)
    await crew.close()

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""


def test_handlers_of_a_script_are_found_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    ran = subprocess.run([sys.executable, script, "whoami"], capture_output=True, text=True, timeout=60, check=True)
    assert "__mp_main__" in ran.stdout, ran.stderr


async def test_an_isolated_process_dies_with_its_worker(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    worker = await asyncio.create_subprocess_exec(sys.executable, script, "hang", stdout=subprocess.PIPE)
    assert worker.stdout is not None
    pid = int(await asyncio.wait_for(worker.stdout.readline(), 60))
    worker.kill()
    await worker.wait()
    await until(lambda: is_gone(pid))
